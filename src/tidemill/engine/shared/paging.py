"""Pages of jobs: the cursor that a page ends with, and the walk that it continues.

A listing is a walk over (state, queue) in a fixed order. Within each, jobs come by a key of a few numbers
and texts, in an order that the store keeps anyway. A cursor holds the position in the walk and the key of the
last job that was scanned. So a page costs the same however deep it lies.

A cursor comes back from a browser. It begins with a digest of the filter and of the cursor itself. A cursor
that was cut off, altered or passed to another listing is refused. The digest is no secret, so the content of
a cursor is still checked before a store sees it.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from tidemill.engine.shared.checks import EXACT
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.queues.lane import PRIORITIES
from tidemill.model.view import SCAN_LIMIT, JobFilter, Page, is_scanned, matches, states_of

CursorKey = list[int | str]

DIGEST_SIZE = 6
_ANOTHER = "this cursor belongs to another listing, or was altered; begin again without one"

_KEYS: dict[JobState, tuple[type, ...]] = {
    JobState.BLOCKED: (int,),
    JobState.SCHEDULED: (int, int),
    JobState.READY: (int, int, str, int),
    JobState.RUNNING: (int,),
    JobState.COMPLETED: (int, int),
    JobState.DEAD: (int, int),
    JobState.CANCELLED: (int, int),
}
"""By creation; due time, seq; priority, kind (plain, suspect, the same aside), lane, seq; end, creation."""


class Cursor(msgspec.Struct, array_like=True):
    """Where a page ended."""

    state: JobState
    queue: str
    key: CursorKey


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Cursor).decode


def write_cursor(only: JobFilter, cursor: Cursor) -> str:
    """As the caller gets it."""
    return write_opaque(_encode(only), _encode(cursor))


def read_cursor(only: JobFilter, text: str | None) -> Cursor | None:
    """The position that a cursor names in the listing of this filter, or `BadInput`."""
    if text is None:
        return None
    try:
        cursor = _decode(read_opaque(_encode(only), text))
    except msgspec.DecodeError:
        raise _not_ours(text) from None
    if not _fits(only, cursor):
        raise BadInput(_ANOTHER)
    return cursor


def write_opaque(of: bytes, said: bytes) -> str:
    """A cursor of the listing `of`: what it says, behind the digest of both."""
    return base64.urlsafe_b64encode(_digest(of, said) + said).decode()


def read_opaque(of: bytes, text: str) -> bytes:
    """What a cursor of the listing `of` says, or `BadInput`."""
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise _not_ours(text) from None
    if raw[:DIGEST_SIZE] != _digest(of, raw[DIGEST_SIZE:]):
        raise BadInput(_ANOTHER)
    return raw[DIGEST_SIZE:]


def _not_ours(text: str) -> BadInput:
    return BadInput(f"{text!r} is not a cursor that a listing gave; begin again without one")


def _digest(of: bytes, said: bytes) -> bytes:
    return hashlib.blake2b(of + b"\0" + said, digest_size=DIGEST_SIZE).digest()


def _fits(only: JobFilter, cursor: Cursor) -> bool:
    """Whether every store can continue behind this position."""
    kinds, key = _KEYS[cursor.state], cursor.key
    if cursor.state not in states_of(only) or len(key) != len(kinds) or "\0" in cursor.queue:
        return False
    for part, kind in zip(key, kinds, strict=True):
        if type(part) is not kind:
            return False
        if isinstance(part, str):
            if "\0" in part:
                return False
        elif not 0 <= part < EXACT:
            return False
    return cursor.state is not JobState.READY or (key[0] in PRIORITIES and key[1] in range(4))


def positions_after(
    only: JobFilter, at: Cursor | None, queues: Iterable[str]
) -> Iterator[tuple[JobState, str, CursorKey | None]]:
    """The states and queues that are left to walk, and the key behind which the first of them goes on.
    `queues`: all names, in order."""
    states, names = states_of(only), [name for name in queues if only.queue in (None, name)]
    if at is None:
        yield from ((state, name, None) for state in states for name in names)
        return
    for name in names:
        if name >= at.queue:
            yield at.state, name, at.key if name == at.queue else None
    for state in states[states.index(at.state) + 1 :]:
        yield from ((state, name, None) for name in names)


def chunk_size(only: JobFilter, limit: int, most: int) -> int:
    """How many jobs to read at once: with a filter that no order answers, a page may need any number."""
    return most if is_scanned(only) else min(most, limit + 1)


class PageBuilder:
    """A page that is being filled."""

    def __init__(self, only: JobFilter, at: Cursor | None, limit: int) -> None:
        self._only = only
        self._last = at
        self._limit = limit
        self._jobs: list[JobRecord] = []
        self._scanned = 0

    @property
    def full(self) -> bool:
        """Whether it takes no more jobs, or has scanned enough."""
        return len(self._jobs) >= self._limit or self._scanned >= SCAN_LIMIT

    def scan(self, at: Cursor, job: JobRecord, body: bytes) -> None:
        """The next job of the walk."""
        self._scanned += 1
        self._last = at
        if matches(self._only, job, body):
            self._jobs.append(job)

    def page(self, *, more: bool) -> Page:
        """The page; `more`: the walk has not ended."""
        cursor = write_cursor(self._only, self._last) if more and self._last is not None else None
        return Page(jobs=self._jobs, cursor=cursor, scanned=self._scanned)
