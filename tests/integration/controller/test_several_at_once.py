"""Several controllers at once: what an election prevents for most of the time must do no harm either."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from tidemill.controller.controller import Controller
from tidemill.controller.election import Election
from tidemill.controller.term import ElectedTerm
from tidemill.controller.ticks.promotion import Promotion
from tidemill.controller.ticks.retention import Retention
from tidemill.controller.ticks.tick import Term, Tick
from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine, Promoted, Pruned
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState, NewJob
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import configure

NOW = 1_900_000_000 * SECOND
DUE = NOW + SECOND
MANY = 4_000
KEPT = 700


class Counting:
    """An engine's jobs, with a count of what was moved and deleted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.moved = self.deleted = 0
        self.more = True
        """The last step did not reach the end."""
        self.jobs = self

    async def promote(self) -> Promoted:
        promoted = await self._engine.jobs.promote(now=DUE)
        self.moved += promoted.jobs
        self.more = promoted.wait == 0
        return promoted

    async def prune(self) -> Pruned:
        pruned = await self._engine.jobs.prune(now=DUE)
        self.deleted += pruned.jobs
        self.more = pruned.more
        return pruned


async def to_the_end(tick: Tick, engine: Counting) -> None:
    """Run it under a term of its own until it has nothing more to do: nobody was elected here."""
    term = ElectedTerm(1, sent_ns=boot_ns(), lease_s=60)
    while engine.more:
        await tick.run(engine, term)  # type: ignore[arg-type]


async def all_at_once(ticks: Sequence[Tick], engines: Sequence[Engine]) -> list[Counting]:
    counting = [Counting(engine) for engine in engines]
    runs = [to_the_end(tick, engine) for tick, engine in zip(ticks, counting, strict=True)]
    async with asyncio.timeout(60):
        await asyncio.gather(*runs)
    return counting


async def enqueue(engine: Engine) -> list[NewJob]:
    jobs = [NewJob(id=new_id(), task="t", queue="q", body=b"[[],{}]", delay=SECOND) for _ in range(MANY)]
    for begin in range(0, MANY, 1_000):
        await engine.jobs.enqueue(jobs[begin : begin + 1_000], now=NOW)
    return jobs


@pytest.mark.row("B2", "A3")
async def test_each_due_job_is_moved_once_whoever_does_it(engines: list[Engine]) -> None:
    engine = engines[0]
    await configure(engine, "q", QueueOptions(), now=NOW)
    await engine.queues.pause("q", now=NOW)  # time goes on in a paused queue
    jobs = await enqueue(engine)
    counted = await all_at_once([Promotion() for _ in engines], engines)
    assert sum(one.moved for one in counted) == MANY
    found = []
    for begin in range(0, MANY, 1_000):
        found += await engine.inspect.get([job.id for job in jobs[begin : begin + 1_000]])
    assert Counter(job.state for job in found if job is not None) == {JobState.READY: MANY}


@pytest.mark.row("B2", "C6")
async def test_retention_deletes_each_job_once_and_never_too_many(engines: list[Engine]) -> None:
    engine = engines[0]
    await configure(engine, "q", QueueOptions(keep_cancelled=Keep(count=KEPT)), now=NOW)
    jobs = await enqueue(engine)
    first, last = jobs[:-KEPT], jobs[-KEPT:]
    for begin in range(0, len(first), 1_000):
        await engine.jobs.cancel([job.id for job in first[begin : begin + 1_000]], now=NOW)
    await engine.jobs.cancel([job.id for job in last], now=NOW + 1)
    counted = await all_at_once([Retention() for _ in engines], engines)
    assert sum(one.deleted for one in counted) == MANY - KEPT
    page = await engine.inspect.list(JobFilter(state=JobState.CANCELLED), limit=1_000)
    assert {job.id for job in page.jobs} == {job.id for job in last}


class Fences:
    """A tick that notes under which fence it runs, and that it is never run beside another's."""

    name = "fences"
    every = 0.005

    def __init__(self, seen: list[int]) -> None:
        self._seen = seen

    async def run(self, engine: Engine, term: Term) -> float | None:
        self._seen.append(term.fence)
        await engine.now()
        assert term.trusted()
        assert self._seen[-1] <= term.fence, "a younger term has begun beside ours"
        return None


@pytest.mark.row("D1", "B2")
async def test_of_three_candidates_one_serves_at_a_time_through_every_hand_over(
    engines: list[Engine],
) -> None:
    seen: list[int] = []
    controllers = [
        Controller(
            engine, [Fences(seen)], Election(engine, member=bytes([n]) * 16, lease_s=1.0, heartbeat_s=0.2)
        )
        for n, engine in enumerate(engines)
    ]
    running = [asyncio.create_task(controller.run()) for controller in controllers]
    async with asyncio.timeout(60):
        for _ in range(len(engines)):
            terms = len(set(seen))
            while len(set(seen)) == terms or seen.count(seen[-1]) < 3:  # noqa: ASYNC110  (a list)
                await asyncio.sleep(0.01)
            (lease,) = await engines[0].leases.list()
            leader = [bytes([n]) * 16 for n in range(3)].index(bytes.fromhex(lease.holder))
            controllers[leader].stop()
            await running[leader]
            for controller in controllers:
                controller.vacant()
    assert seen == sorted(seen), "no older term after a younger one"
    assert len(set(seen)) == len(engines)
    assert await engines[0].leases.list() == []
