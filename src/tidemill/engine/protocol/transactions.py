"""The `transactions` and `blocking` facets: other ways to the same storage, for engines that have them."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence, KnownCall, NewJob, Stored
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import (
    Answer,
    Fate,
    Note,
    Settlement,
)
from tidemill.model.time import Instant
from tidemill.model.view import (
    Statement,
)

T = TypeVar("T")

Script: TypeAlias = Generator[Statement, Sequence[Sequence[Any]], T]
"""Statements for a connection of the caller's own, one after the other: each is yielded, its rows are sent
back (none: an empty list), the answer is returned. A script does no I/O itself."""

CheckKnown: TypeAlias = Callable[[Sequence[KnownCall]], None]
"""Is given the calls that are stored under some ids, and raises if one of them should not be there."""


class TransactionsFacet(Protocol):
    """For engines that speak SQL: enqueue and complete inside the caller's own transaction.

    The scripts run on a connection of the caller's, in the caller's transaction, which may stay open for long
    and is never waited for by claims, settles of other jobs, heartbeats or sweeps. (SQLite has one writer at
    a time: there everybody waits.) Placeholders are those of the engine's usual drivers: `$1` with a
    sequence, `:name` with a mapping. A connection that leads to another database or namespace than this
    engine's is refused (`Refused`), as far as that can be told from there."""

    def enqueue(self, jobs: Sequence[NewJob], *, check: CheckKnown | None = None) -> Script[list[Stored]]:
        """Store these jobs: they exist if and only if that transaction commits. Checked at the call as in
        `Jobs.enqueue`, which also says what is answered; an existing id is passed over; `after` is refused,
        and so is a unique key with `on_conflict="replace"`: the job that is there would be held for as long
        as the transaction is open. A unique key is held from here on; others that enqueue it wait. A keyed
        job may get its lane only with the next claim. The signal is sent with the commit, or left to the next
        poll.

        If an id was passed over, `check` is given what is now stored under the ids of this call (tombstones
        too, each id once, in any order): as that transaction sees it, with what it has stored itself. If no
        id was, `check` may be called or not. If it raises, the script undoes what it has stored, raises the
        same, and leaves the transaction as good as it was."""
        ...

    def complete(self, settlement: Settlement, notes: Sequence[Note] = ()) -> Script[Answer]:
        """Record one outcome, which must be `Completed`, and before it what the same run still had to note:
        it stands if and only if that transaction commits.

        The answers of `Jobs.settle`, judged inside the transaction; after `ALREADY` and `STALE` nothing was
        written, and the caller should roll back. After `APPLIED` and the commit everything is as with a
        settle, `then` included; until then nothing is to be seen, and the run holds its job. Children
        follow with the next claim or promote; waiters are told with the commit, or find it by their own
        poll."""
        ...

    async def fates(self, runs: Sequence[tuple[JobId, Fence]]) -> list[Fate]:
        """What became of runs that were completed this way. Waits for no transaction. An engine that cannot
        tell `OPEN` from `FREE` answers `FREE`: there a settle waits for the transaction, or finds that it
        is `ALREADY` settled."""
        ...


class BlockingFacet(Protocol):
    """For threads that wait anyway, on engines whose calls block a thread in any case: the work is done in
    the caller's own thread instead of on the engine's loop."""

    def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        """`Jobs.enqueue` for any thread except the loop's own; returns after the commit. Calls of several
        threads at once are merged as those of tasks are. An interrupt (an exception raised by a signal's
        handler) leaves nothing half-written; whether the jobs were stored is then unknown."""
        ...
