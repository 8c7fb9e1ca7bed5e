"""Why jobs are where they are: the facts, read from the tables that claims read."""

from collections.abc import Sequence
from sqlite3 import Connection

from tidemill.engine.shared.records import member_of
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.order import gates
from tidemill.engines.sqlite.order.positions import TOMBSTONE
from tidemill.engines.sqlite.read.rows import FORM, LISTED, job_of, state_of
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.member import MemberRecord
from tidemill.model.queues.gate import oldest_counting
from tidemill.model.time import Instant
from tidemill.model.why.facts import (
    AHEAD_COUNTED,
    HOLDERS_SHOWN,
    PARENTS_READ,
    GateFacts,
    GateToPass,
    Holder,
    ParentFacts,
    Pause,
    QueueFacts,
    WhyFacts,
    gates_to_pass,
    has_started,
    held_bound,
    in_order,
    workers_for,
    worth_showing,
)

SQL = load_statements("tidemill.engines.sqlite", "why")

_HOLDERS = {"queue": SQL.holders_of_queue, "task": SQL.holders_of_task, "key": SQL.holders_of_key}


class SqliteWhy:
    """The reads of one call, in one transaction: what several jobs share is read once."""

    def __init__(self, db: Connection, now: Instant) -> None:
        self._db = db
        self._now = now
        self._queues: dict[str, tuple[int, QueueFacts]] = {}
        self._gates: dict[tuple[int, str, str], GateFacts] = {}
        self._members: list[MemberRecord] | None = None

    def facts(self, ids: Sequence[JobId]) -> list[WhyFacts | None]:
        return [self._of(job_id) for job_id in ids]

    def _of(self, job_id: JobId) -> WhyFacts | None:
        row = self._db.execute(f"{LISTED} FROM job_now WHERE id = ?", (job_id,)).fetchone()
        if row is None or row[FORM] == TOMBSTONE:
            return None
        job, pk = job_of(row), int(row[0])
        if has_started(job):
            return WhyFacts(now=self._now, job=job)
        queue_pk, queue = self._queue(job.queue)
        ready = job.state is JobState.READY
        return WhyFacts(
            now=self._now,
            job=job,
            pause=queue.pause,
            task_pause=self._task_pause(job.task),
            gates=tuple(self._gate(queue_pk, gate) for gate in gates_to_pass(job, queue.options, self._now)),
            ahead=self._ahead(queue_pk, job) if ready else 0,
            better=self._better(queue_pk, job) if ready else 0,
            parents=self._parents(pk) if job.state is JobState.BLOCKED else (),
            workers=workers_for(job, self._live()),
            per_worker=queue.options.per_worker,
        )

    def _queue(self, name: str) -> tuple[int, QueueFacts]:
        known = self._queues.get(name)
        if known is None:
            pk, *stored = self._db.execute(SQL.queue, (name,)).fetchone()
            known = self._queues[name] = (pk, QueueFacts.read(*stored))
        return known

    def _task_pause(self, task: str) -> Pause | None:
        row = self._db.execute(SQL.task_pause, (task,)).fetchone()
        return None if row is None else Pause(*row)

    def _gate(self, queue: int, gate: GateToPass) -> GateFacts:
        name = (queue, gate.kind, gate.name)
        if name not in self._gates:
            self._gates[name] = GateFacts(
                gate=gate,
                held=self._held(queue, gate),
                holders=self._holders(queue, gate),
                starts=self._starts(queue, gate),
            )
        return self._gates[name]

    def _held(self, queue: int, gate: GateToPass) -> int:
        if gate.limit.concurrency is None:
            return 0
        bound = held_bound(gate.limit)
        (held,) = self._db.execute(gates.HELD[gate.kind], (queue, gate.name, bound)).fetchone()
        return int(held)

    def _holders(self, queue: int, gate: GateToPass) -> tuple[Holder, ...]:
        if gate.limit.concurrency is None:
            return ()
        rows = self._db.execute(_HOLDERS[gate.kind], (queue, gate.name, HOLDERS_SHOWN))
        return in_order(Holder(*row) for row in rows)

    def _starts(self, queue: int, gate: GateToPass) -> tuple[tuple[Instant, int], ...]:
        rate = gate.limit.rate
        if rate is None:
            return ()
        expired = oldest_counting(rate, self._now)
        return tuple(self._db.execute(gates.SQL.starts, (queue, gate.kind, gate.name, expired)))

    def _ahead(self, queue: int, job: JobRecord) -> int:
        count, bound = 0, AHEAD_COUNTED + 1
        for suspect in (0, 1) if job.suspect else (0,):
            lane = (queue, job.priority, suspect, job.group, job.seq, bound)
            count += int(self._db.execute(SQL.ahead, lane).fetchone()[0])
        return min(count, bound)

    def _better(self, queue: int, job: JobRecord) -> int:
        bound = AHEAD_COUNTED + 1
        (count,) = self._db.execute(SQL.better, (queue, job.priority, bound)).fetchone()
        return min(int(count), bound)

    def _parents(self, child: int) -> tuple[ParentFacts, ...]:
        rows = self._db.execute(SQL.parents, (child, PARENTS_READ))
        return worth_showing(ParentFacts(job_id, state_of(state)) for job_id, state in rows)

    def _live(self) -> list[MemberRecord]:
        if self._members is None:
            self._members = [member_of(row, self._now) for row in self._db.execute(SQL.members)]
        return self._members
