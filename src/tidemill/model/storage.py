"""How much room the state takes, who keeps it from being used again, and what of that deserves a warning.

Stores keep what was deleted or replaced until no reader can need it any more. One transaction that stays
open, in any program on the same database, is enough to let everything grow: so it is named here."""

from collections.abc import Iterator
from enum import Enum

import msgspec

from tidemill.model.time import DAY, MINUTE, SECOND, Span

LOST_DATA_SHOWN: Span = DAY
"""So long after they were noticed lost data are worth a warning."""
LONG_HELD: Span = 5 * MINUTE
"""From here on a transaction that holds things back is worth a warning."""
MANY_BEHIND = 1_000_000
"""The same in transactions since it began, where its age is not to be seen."""
MANY_DEAD, DEAD_SHARE = 100_000, 0.2
"""Dead rows of a part: at least so many, and at least this share of its rows."""
MUCH_FREE, FREE_SHARE = 1 << 28, 0.5
"""Bytes of a part that could be freed: at least so many, and at least this share of it."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the state that grows by itself: a table, a file."""

    name: str
    bytes: int
    """All of it, indexes included."""
    rows: int | None = None
    """About how many; None: not known without counting them."""
    dead: int | None = None
    """About how many rows were deleted or replaced and not yet cleared away; None: there is no such thing."""
    free: int | None = None
    """Bytes that will be used again before it grows; None: not known."""


class HolderKind(Enum):
    """Who can keep a store from clearing away."""

    TRANSACTION = "transaction"
    """A session with a transaction that has not ended."""
    PREPARED = "prepared"
    """A transaction that was prepared (two-phase commit) and neither committed nor rolled back."""
    SLOT = "slot"
    """A replication slot."""
    READER = "reader"
    """A reader that the store cannot name."""


MUCH_HELD = {HolderKind.SLOT: 1 << 30, HolderKind.READER: 1 << 27}
"""Bytes that a holder keeps from being used again: from here on worth a warning."""


class StorageHolder(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps the store from clearing away what is no longer needed: a transaction, a slot, a reader."""

    kind: HolderKind
    name: str = ""
    """The process id of a session, the id of a prepared transaction, the name of a slot."""
    age: Span | None = None
    """None: not to be seen, for want of rights or because the store does not know."""
    behind: int | None = None
    """How many transactions have begun since."""
    bytes: int | None = None
    """What it keeps from being used again; None: not known."""
    state: str = ""
    """What a session does now, whether a slot is in use."""
    application: str = ""
    user: str = ""


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """What the state of one namespace takes."""

    bytes: int
    """All parts."""
    parts: list[Part]
    """Largest first."""
    holders: list[StorageHolder] = []
    """The one that holds most back comes first; short ones of the moment too."""
    cleared: bool = True
    """False: the store's own clearing away (autovacuum) is switched off."""
    rolled_back: Span | None = None
    """How long ago it was noticed that the store had lost what it had acknowledged; None: never."""
    evicts: str = ""
    """The setting by which the store deletes our data when memory runs out; empty: it does not."""
    saved: bool = True
    """False: what is acknowledged is not written to disk at once; the store's next restart loses it."""


class StorageWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator should do."""

    kind: str
    """"rolled back", "evicts", "unsaved", "held", "dead", "free" or "off"; of `doctor` also
    "controller", "queue" and "task"."""
    subject: str
    """Whom it is about: the same subject again is the same trouble."""
    text: str
    """What is wrong, and what to do."""


def warnings_of(storage: Storage) -> list[StorageWarning]:
    """What deserves attention, the cause before the effects."""
    found = [*_lost_data(storage), *map(_held, filter(_holds_much, storage.holders))]
    if not storage.cleared:
        text = "autovacuum is off on the server: dead rows are never removed; switch it on"
        found.append(StorageWarning(kind="off", subject="autovacuum", text=text))
    for part in storage.parts:
        found += _of_part(part)
    return found


def _lost_data(storage: Storage) -> Iterator[StorageWarning]:
    """What has been lost, or will be."""
    if storage.rolled_back is not None and storage.rolled_back < LOST_DATA_SHOWN:
        text = (
            f"the store had lost acknowledged data when a worker checked {_ago(storage.rolled_back)} ago: it "
            "was restarted without its file, or a replica took over that lagged; jobs may be missing or have "
            "run twice, and what operators had set is to be set again"
        )
        yield StorageWarning(kind="rolled back", subject="data", text=text)
    if storage.evicts:
        text = (
            f"the store evicts keys when memory runs out ({storage.evicts}), which loses jobs: set "
            "maxmemory-policy to noeviction"
        )
        yield StorageWarning(kind="evicts", subject="maxmemory-policy", text=text)
    if not storage.saved:
        text = (
            "the store keeps no append-only file: its next restart loses everything since its last snapshot; "
            "set appendonly to yes"
        )
        yield StorageWarning(kind="unsaved", subject="appendonly", text=text)


def _ago(span: Span) -> str:
    return f"{span // MINUTE:,} min" if span >= 2 * MINUTE else f"{span // SECOND} s"


def _holds_much(holder: StorageHolder) -> bool:
    if holder.age is not None and holder.age >= LONG_HELD:
        return True
    unseen = holder.age is None and (holder.behind or 0) >= MANY_BEHIND
    return unseen or (holder.bytes or 0) >= MUCH_HELD.get(holder.kind, 1 << 30)


def _held(holder: StorageHolder) -> StorageWarning:
    who = {
        HolderKind.TRANSACTION: f"the transaction of process {holder.name}",
        HolderKind.PREPARED: f"the prepared transaction {holder.name}",
        HolderKind.SLOT: f"the replication slot {holder.name}",
        HolderKind.READER: "a reader",
    }[holder.kind]
    about = ", ".join(
        part
        for part in (
            f"application {holder.application!r}" if holder.application else "",
            f"user {holder.user}" if holder.user else "",
            holder.state,
            f"{holder.age // SECOND:,} s old" if holder.age is not None else "",
            f"{holder.behind:,} transactions ago" if holder.age is None and holder.behind else "",
            f"{holder.bytes >> 20:,} MiB kept" if holder.bytes else "",
        )
        if part
    )
    text = f"{who} ({about}) keeps what is deleted from being cleared away: {_CURES[holder.kind]}"
    return StorageWarning(kind="held", subject=f"{holder.kind.value} {holder.name}".strip(), text=text)


_CURES = {
    HolderKind.TRANSACTION: "let it end, or end it with pg_terminate_backend",
    HolderKind.PREPARED: "COMMIT PREPARED or ROLLBACK PREPARED",
    HolderKind.SLOT: "start its consumer, or drop the slot",
    HolderKind.READER: "look for a program that keeps a read transaction on that file open",
}


def _of_part(part: Part) -> Iterator[StorageWarning]:
    dead, rows, free = part.dead or 0, part.rows or 0, part.free or 0
    if dead >= MANY_DEAD and dead >= DEAD_SHARE * rows:
        text = (
            f"{part.name} has {dead:,} dead rows beside {rows:,} ({part.bytes >> 20:,} MiB): clearing away "
            "does not keep up, or somebody holds it back"
        )
        yield StorageWarning(kind="dead", subject=part.name, text=text)
    if free >= MUCH_FREE and free >= FREE_SHARE * part.bytes:
        text = (
            f"{free >> 20:,} of {part.bytes >> 20:,} MiB of {part.name} are free and will be used again; "
            "to give them back to the disk, VACUUM while nothing runs"
        )
        yield StorageWarning(kind="free", subject=part.name, text=text)
