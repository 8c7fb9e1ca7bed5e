"""Why jobs are where they are: the facts, read in one snapshot from the tables that claims read.

Each table is read by one small method: what changes there is followed here in one place.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tidemill.engine.shared.records import member_of
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.read.rows import LISTED, job_of
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import STATES, JobRecord, JobState
from tidemill.model.member import MemberRecord
from tidemill.model.queues.gate import oldest_counting
from tidemill.model.queues.queue import QueueOptions
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

SQL = load_statements("tidemill.engines.postgres", "why")

_HELD = {"queue": SQL.held_by_queue, "task": SQL.held_by_task, "key": SQL.held_by_key}
_HOLDERS = {"queue": SQL.holders_of_queue, "task": SQL.holders_of_task, "key": SQL.holders_of_key}
_JOBS = f"SELECT {LISTED} FROM {{schema}}.shown WHERE id = ANY ($1::bytea[]) AND form < 2"


async def why(store: PostgresStore, ids: Sequence[JobId], now: Instant | None) -> list[WhyFacts | None]:
    """The facts of these jobs."""

    async def work(connection: "Connection[Any]") -> list[WhyFacts | None]:
        ((at,),) = await connection.fetch(store.sql(SQL.now), now)
        return await PostgresWhy(connection, store.sql, at).facts(ids)

    return await store.snapshot(work)


class PostgresWhy:
    """The reads of one call, in one snapshot: what several jobs share is read once."""

    def __init__(self, connection: "Connection[Any]", sql: Callable[[str], str], now: Instant) -> None:
        self._connection = connection
        self._sql = sql
        self._now = now
        self._queues: dict[str, QueueFacts] = {}
        self._gates: dict[tuple[str, str, str], GateFacts] = {}
        self._members: list[MemberRecord] | None = None

    async def facts(self, ids: Sequence[JobId]) -> list[WhyFacts | None]:
        jobs = {row[0]: job_of(row) for row in await self._rows(_JOBS, ids)}
        facts = {job_id: await self._of(job) for job_id, job in jobs.items()}
        return [facts.get(job_id) for job_id in ids]

    async def _rows(self, statement: str, *parameters: object) -> Sequence[Sequence[Any]]:
        return await self._connection.fetch(self._sql(statement), *parameters)

    async def _of(self, job: JobRecord) -> WhyFacts:
        if has_started(job):
            return WhyFacts(now=self._now, job=job)
        queue = await self._queue(job.queue)
        ready = job.state is JobState.READY
        gates = gates_to_pass(job, queue.options, self._now)
        return WhyFacts(
            now=self._now,
            job=job,
            pause=queue.pause,
            task_pause=await self._task_pause(job.task),
            gates=tuple([await self._gate(job.queue, gate) for gate in gates]),
            ahead=await self._ahead(job) if ready else 0,
            better=await self._better(job) if ready else 0,
            parents=await self._parents(job.id) if job.state is JobState.BLOCKED else (),
            workers=workers_for(job, await self._live()),
            per_worker=queue.options.per_worker,
        )

    async def _queue(self, name: str) -> QueueFacts:
        """A queue that is only announced (`queue_new`) has the default options."""
        if name not in self._queues:
            rows = await self._rows(SQL.queue, name)
            self._queues[name] = QueueFacts.read(*rows[0]) if rows else QueueFacts(QueueOptions())
        return self._queues[name]

    async def _task_pause(self, task: str) -> Pause | None:
        rows = await self._rows(SQL.task_pause, task)
        return Pause(*rows[0]) if rows else None

    async def _gate(self, queue: str, gate: GateToPass) -> GateFacts:
        name = (queue, gate.kind, gate.name)
        if name not in self._gates:
            self._gates[name] = GateFacts(
                gate=gate,
                held=await self._held(queue, gate),
                holders=await self._holders(queue, gate),
                starts=await self._starts(queue, gate),
            )
        return self._gates[name]

    async def _held(self, queue: str, gate: GateToPass) -> int:
        if gate.limit.concurrency is None:
            return 0
        ((held,),) = await self._rows(_HELD[gate.kind], queue, gate.name, held_bound(gate.limit))
        return int(held)

    async def _holders(self, queue: str, gate: GateToPass) -> tuple[Holder, ...]:
        if gate.limit.concurrency is None:
            return ()
        rows = await self._rows(_HOLDERS[gate.kind], queue, gate.name, HOLDERS_SHOWN)
        return in_order(Holder(*row) for row in rows)

    async def _starts(self, queue: str, gate: GateToPass) -> tuple[tuple[Instant, int], ...]:
        rate = gate.limit.rate
        if rate is None:
            return ()
        expired = oldest_counting(rate, self._now)
        rows = await self._rows(SQL.starts, queue, gate.kind, gate.name, expired)
        return tuple((step, count) for step, count in rows)

    async def _ahead(self, job: JobRecord) -> int:
        count, bound = 0, AHEAD_COUNTED + 1
        for suspect in (False, True) if job.suspect else (False,):
            lane = (job.queue, job.priority, suspect, job.group, job.seq, bound)
            ((found,),) = await self._rows(SQL.ahead, *lane)
            count += found
        return min(count, bound)

    async def _better(self, job: JobRecord) -> int:
        ((count,),) = await self._rows(SQL.better, job.queue, job.priority, AHEAD_COUNTED + 1)
        return int(count)

    async def _parents(self, child: JobId) -> tuple[ParentFacts, ...]:
        rows = await self._rows(SQL.parents, child, PARENTS_READ)
        return worth_showing(ParentFacts(job_id, STATES[state]) for job_id, state in rows)

    async def _live(self) -> list[MemberRecord]:
        if self._members is None:
            self._members = [member_of(row, self._now) for row in await self._rows(SQL.members)]
        return self._members
