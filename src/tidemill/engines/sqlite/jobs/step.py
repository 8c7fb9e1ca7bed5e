"""One operation inside a transaction, and what follows from every change it makes.

Every change of a job's state passes `Step.move`, which asks the lifecycle and keeps the counts: no
operation can forget one of them. `finish` writes the sums once per operation, so that a batch of 100
costs the same two or three statements as a single job.
"""

import sqlite3
import time
from collections import defaultdict
from functools import cache

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import Catalogue
from tidemill.model.event import Signal, ready_topic, waiter_topic
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import STATES, Failure, JobState
from tidemill.model.jobs.lifecycle import check_step
from tidemill.model.jobs.move import Move, Moves, reason_of
from tidemill.model.time import MINUTE, Instant

SQL = load_statements("tidemill.engines.sqlite", "step")

CODE = {state: code for code, state in enumerate(STATES)}
BLOCKED, SCHEDULED, READY, RUNNING, COMPLETED, DEAD, CANCELLED = range(len(STATES))
"""States as stored."""


class Step:
    """What an operation works with."""

    __slots__ = (
        "_ended", "_finished", "_signals", "_tally", "_whys",
        "catalogue", "db", "handled", "moves", "now", "parents_ended",
    )  # fmt: skip

    def __init__(self, db: sqlite3.Connection, catalogue: Catalogue, now: Instant | None) -> None:
        self.db = db
        self.catalogue = catalogue
        self.now: Instant = time.time_ns() // 1_000 if now is None else now
        self.parents_ended = False
        """A parent ended in this step: its children are to be updated."""
        self.handled = 0
        """Bytes of the payloads of jobs that died and left a handler."""
        self.moves: Moves | None = None
        """Where jobs that move are named; None: there are no listeners."""
        self._whys: dict[JobId, str] = {}
        self._tally: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._finished: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self._signals: dict[Signal, None] = {}
        self._ended: list[tuple[int, JobId]] = []

    def next_seq(self) -> int:
        """The number of the order from which on new jobs are stored, each with its number as its pk."""
        (first,) = self.db.execute(SQL.next_seq).fetchone()
        return int(first)

    def keep_seq(self, pk: int) -> None:
        """A job is about to go, and its number must not come again."""
        self.db.execute(SQL.keep_seq, (pk,))

    def draw_seq(self, count: int) -> int:
        """Draw `count` numbers of the order for jobs that are stored already; returns the first."""
        (last,) = self.db.execute(SQL.draw_seq, (count,)).fetchone()
        return int(last) - count + 1

    def draw_fences(self, count: int) -> int:
        """Draw `count` fences; returns the first."""
        (last,) = self.db.execute(SQL.draw_fences, (time.time_ns() // 1_000, count)).fetchone()
        return int(last) - count + 1

    def all_or_none(self, *work: tuple[str, list[tuple[object, ...]]]) -> bool:
        """Run statements, each for its rows; if one row changed nothing, undo them all and say False."""
        if sum([len(rows) for _, rows in work]) == 1:  # then there is nothing to undo
            return all(self.db.execute(statement, rows[0]).rowcount == 1 for statement, rows in work if rows)
        self.db.execute("SAVEPOINT rows")
        done = all(
            self.db.executemany(statement, rows).rowcount == len(rows) for statement, rows in work if rows
        )
        if not done:
            self.db.execute("ROLLBACK TO rows")
        self.db.execute("RELEASE rows")
        return done

    def move(self, queue: int, before: int | None, after: int | None, count: int = 1) -> None:
        """Jobs of a queue go from one state to another (None: not there)."""
        _check(before, after)
        if before is not None:
            self._tally[queue, before] -= count
        if after is not None:
            self._tally[queue, after] += count
            if after >= COMPLETED:
                self._finished[queue][(0, 2, 3)[after - COMPLETED]] += count

    def failed(self, job_id: JobId, failure: Failure) -> None:
        """A failure was recorded, with which a job moves now."""
        if self.moves is not None:
            self._whys[job_id] = reason_of(failure)

    def moved(self, job_id: JobId, state: int, queue: int, task: str) -> None:
        """Name a job that came into a state otherwise than by being enqueued, claimed or completed."""
        if self.moves is not None and state != COMPLETED:
            why = self._whys.pop(job_id, "")
            self.moves.add(Move(job_id, STATES[state], self.catalogue.by_pk[queue].name, task, why))

    def count_failed(self, queue: int, count: int = 1) -> None:
        """Attempts failed, whatever became of their jobs."""
        self._finished[queue][1] += count

    def ended(self, pk: int, job_id: JobId) -> None:
        """A job came to a final state: its watchers get a signal."""
        self._ended.append((pk, job_id))

    def signal(self, topic: str, text: str = "") -> None:
        """Publish after the commit."""
        self._signals[Signal(topic, text)] = None

    def signal_ready(self, queue: int) -> None:
        """Something became claimable in a queue."""
        self._signals[Signal(ready_topic(self.catalogue.by_pk[queue].name))] = None

    def audit(self, by: str, action: str, target: str, detail: str = "") -> None:
        """Remember what an operator did."""
        if by:
            self.db.execute(SQL.audit, (self.now, by, action, target, detail))

    def finish(self) -> list[Signal]:
        """Write the sums; returns what to publish after the commit."""
        if self._tally:
            changes = [(queue, state, count) for (queue, state), count in self._tally.items() if count]
            self.db.executemany(SQL.count, changes)
        if self._finished:
            minute = self.now - self.now % MINUTE
            self.db.executemany(SQL.count_finished, [(q, minute, *n) for q, n in self._finished.items()])
        if self._ended and self.catalogue.watched:
            self._signal_waiters()
        return list(self._signals)

    def _signal_waiters(self) -> None:
        for pk, job_id in self._ended:
            for waiter, until in self.db.execute(SQL.take_watches, (pk,)).fetchall():
                if until > self.now:
                    self.signal(waiter_topic(waiter), job_id.hex())


@cache
def _check(before: int | None, after: int | None) -> None:
    """Ask the lifecycle, once for each step."""
    check_step(_state(before), _state(after))


def _state(code: int | None) -> JobState | None:
    return None if code is None else STATES[code]


def marks(count: int) -> str:
    """`?, ?, ?` for a list of parameters."""
    return ", ".join("?" * count)
