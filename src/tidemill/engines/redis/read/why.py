"""Why jobs are where they are: the facts, as `why.lua` answers them."""

from collections.abc import Sequence
from typing import Any

from tidemill.engine.shared.records import member_of
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.read.rows import Row, job_of
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import STATES
from tidemill.model.member import MemberRecord
from tidemill.model.queues.gate import step_length
from tidemill.model.queues.queue import Rate
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
    in_order,
    workers_for,
    worth_showing,
)


async def why(store: RedisStore, ids: Sequence[JobId], now: Instant | None) -> list[WhyFacts | None]:
    """The facts of these jobs, read by one script."""
    call = ScriptCall(count=len(ids), counted=AHEAD_COUNTED, shown=HOLDERS_SHOWN, parents=PARENTS_READ)
    call.add(*ids)
    at, queue_rows, member_rows, jobs = await store.run(store.reads, "why", call, now)
    queues = {
        name.decode(): QueueFacts.read(options, paused_at, by.decode(), said.decode())
        for name, options, paused_at, by, said in queue_rows
    }
    members = [member_of(row, at) for row in member_rows]
    return [None if row is None else _facts(row, at, queues, members) for row in jobs]


def _facts(row: Row, now: Instant, queues: dict[str, QueueFacts], members: list[MemberRecord]) -> WhyFacts:
    shown, gates, ahead, better, parents, paused = row
    job = job_of(shown)
    if has_started(job):
        return WhyFacts(now=now, job=job)
    queue = queues[job.queue]
    found = {kind.decode(): rest for kind, *rest in gates}
    return WhyFacts(
        now=now,
        job=job,
        pause=queue.pause,
        task_pause=None if paused is None else Pause(paused[0], paused[1].decode(), paused[2].decode()),
        gates=tuple(_gate(gate, *found[gate.kind]) for gate in gates_to_pass(job, queue.options, now)),
        ahead=min(ahead, AHEAD_COUNTED + 1),
        better=min(better, AHEAD_COUNTED + 1),
        parents=worth_showing(ParentFacts(parent, STATES[state]) for parent, state in parents),
        workers=workers_for(job, members),
        per_worker=queue.options.per_worker,
    )


def _gate(gate: GateToPass, held: int, holders: Sequence[Row], log: Sequence[int]) -> GateFacts:
    rate = gate.limit.rate
    return GateFacts(
        gate=gate,
        held=held,
        holders=in_order(Holder(job, member.decode(), since) for job, member, since in holders),
        starts=() if rate is None else tuple(_starts(rate, log)),
    )


def _starts(rate: Rate, log: Sequence[Any]) -> list[tuple[Instant, int]]:
    """The log has the end of each step."""
    length = step_length(rate)
    return [(end - length, count) for end, count in zip(log[::2], log[1::2], strict=True)]
