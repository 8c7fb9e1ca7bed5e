"""Concurrency gates of a queue, a task, a key: never more holders than allowed, never a permit lost."""

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import ClaimedJob, LostRun
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    completed,
    configure,
    ids_of,
    some_jobs,
    states_of,
)

ONE = Limit(concurrency=1)


@pytest.mark.row("E1")
async def test_a_queue_runs_no_more_than_allowed(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(concurrency=3), now=clock.now)
    other = await a_claimant(engine, clock, name="other")
    jobs = some_jobs(8)
    await engine.jobs.enqueue(jobs, now=clock.now)
    first = await claimant.take(most=2)
    assert len(await other.take()) == 1
    assert await claimant.take() == []
    await claimant.complete(first[0])
    assert ids_of(await other.take()) == [jobs[3].id]


@pytest.mark.row("A1")
async def test_a_queue_of_one_starts_strictly_in_order(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    jobs = some_jobs(5)
    await engine.jobs.enqueue(jobs, now=clock.now)
    started = []
    for turn in range(7):
        job = await claimant.take_one()
        started.append(job.id)
        await (claimant.release(job) if turn in (1, 3) else claimant.complete(job))
    order = ids_of(jobs)
    assert started == [order[0], order[1], order[1], order[2], order[2], order[3], order[4]]


async def test_a_gate_of_one_queue_is_no_gate_of_another(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue([*some_jobs(3), *some_jobs(3, queue="r")], now=clock.now)
    assert Counter(job.queue for job in await claimant.take("q", "r")) == {"q": 1, "r": 3}


async def test_a_gate_counts_all_priorities_together(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=2), now=clock.now)
    await engine.jobs.enqueue([a_job(priority=n) for n in (9, 0, 5)], now=clock.now)
    assert [job.priority for job in await claimant.take()] == [0, 5]
    await engine.jobs.enqueue([a_job(priority=0)], now=clock.now)
    assert await claimant.take() == []


@pytest.mark.row("F4")
async def test_each_key_has_its_own_gate(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(per_key=Limit(concurrency=2))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "aaaabbbc"], now=clock.now)
    first = await claimant.take()
    assert Counter(job.key for job in first) == {"a": 2, "b": 2, "c": 1}
    assert await claimant.take() == []
    await claimant.complete(*(job for job in first if job.key == "a"))
    assert [job.key for job in await claimant.take()] == ["a", "a"]


async def test_jobs_without_a_key_share_a_gate(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(per_key=ONE), now=clock.now)
    await engine.jobs.enqueue([a_job(), a_job(), a_job(key="a")], now=clock.now)
    assert sorted(job.key or "" for job in await claimant.take()) == ["", "a"]


async def test_the_three_gates_of_a_lane_hold_together(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(concurrency=5, per_task={"t": Limit(concurrency=3)}, per_key=Limit(concurrency=2))
    await configure(engine, "q", options, now=clock.now)
    tasks = [("t", "a"), ("t", "b"), ("u", "a"), ("u", "b"), ("u", "c")]
    await engine.jobs.enqueue([a_job(task=t, key=k) for t, k in tasks for _ in range(4)], now=clock.now)
    running = await claimant.take()
    assert len(running) == 5
    while running:
        assert len(running) <= 5
        assert Counter(job.task for job in running)["t"] <= 3
        assert max(Counter(job.key for job in running).values()) <= 2
        await claimant.complete(*running)
        running = await claimant.take()
    assert (await engine.inspect.counts(now=clock.now))[0].completed == 20


async def test_two_hundred_full_gates_do_not_hide_the_open_one(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(per_key=ONE), now=clock.now)
    keys = [f"k{n:03}" for n in range(200)]
    await engine.jobs.enqueue([a_job(key=key) for key in keys], now=clock.now)
    assert len(await claimant.take(most=300)) == 200
    await engine.jobs.enqueue([a_job(key=key) for key in keys], now=clock.now)
    assert await claimant.take(most=1) == []
    opened = a_job(key="zz")
    await engine.jobs.enqueue([opened, a_job(key="zz")], now=clock.now)
    assert ids_of(await claimant.take(most=10)) == [opened.id]


# How a permit comes back

GiveBack = Callable[[Claimant, ClaimedJob], Awaitable[object]]


async def by_leaving(claimant: Claimant, job: ClaimedJob) -> None:
    await claimant.engine.members.leave(claimant.member.id, now=claimant.clock.now)


async def by_retiring(claimant: Claimant, job: ClaimedJob) -> None:
    await claimant.engine.jobs.retire(claimant.id, now=claimant.clock.now)


async def by_a_crash(claimant: Claimant, job: ClaimedJob) -> None:
    lost = LostRun(id=job.id, fence=job.fence, verdict="crash")
    await claimant.engine.jobs.retire(claimant.id, [lost], now=claimant.clock.now)


async def by_a_sweep(claimant: Claimant, job: ClaimedJob) -> None:
    sweeper = await a_claimant(claimant.engine, claimant.clock, name="sweeper")
    for _ in range(6):
        claimant.clock.forward(2)
        await sweeper.heartbeat()
    assert (await claimant.engine.jobs.reclaim(sweeper.member.id, now=claimant.clock.now)).jobs == 1


GIVE_BACK: dict[str, GiveBack] = {
    "complete": lambda claimant, job: claimant.complete(job),
    "fail": lambda claimant, job: claimant.fail(job),
    "retry": lambda claimant, job: claimant.fail(job, retry_in=60 * SECOND),
    "stop": lambda claimant, job: claimant.stop(job),
    "release": lambda claimant, job: claimant.release(job),
    "release with a delay": lambda claimant, job: claimant.release(job, delay=60 * SECOND),
    "a heartbeat that holds nothing": lambda claimant, job: claimant.heartbeat(held=()),
    "leave": by_leaving,
    "retire": by_retiring,
    "crash": by_a_crash,
    "reclaim": by_a_sweep,
}


@pytest.mark.parametrize("how", GIVE_BACK)
@pytest.mark.parametrize(
    "options",
    [
        QueueOptions(concurrency=1),
        QueueOptions(per_key=ONE),
        QueueOptions(per_task={"t": ONE}),
    ],
    ids=["queue", "key", "task"],
)
async def test_a_permit_comes_back(engine: Engine, clock: Clock, options: QueueOptions, how: str) -> None:
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue(some_jobs(2, key="k"), now=clock.now)
    holder = await a_claimant(engine, clock, name="holder")
    job = await holder.take_one()
    assert await (await a_claimant(engine, clock, name="early")).take(suspects=9) == []
    await GIVE_BACK[how](holder, job)
    assert len(await (await a_claimant(engine, clock, name="late")).take(suspects=9)) == 1


async def test_a_settle_with_a_claim_sees_the_freed_permits(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=2), now=clock.now)
    jobs = some_jobs(5)
    await engine.jobs.enqueue(jobs, now=clock.now)
    running = await claimant.take()
    settled = await claimant.settle(*map(completed, running), claim=claimant.request())
    assert settled.claim is not None
    assert ids_of(settled.claim.jobs) == ids_of(jobs[2:4])


async def test_a_cancelled_run_keeps_its_permit_until_it_ends(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    job = await claimant.take_one()
    await engine.jobs.cancel([job.id], now=clock.now)
    assert await claimant.take() == []
    await claimant.stop(job)
    assert len(await claimant.take()) == 1


# Options that change under running jobs


@pytest.mark.parametrize(
    "options",
    [
        QueueOptions(concurrency=2),
        QueueOptions(per_key=Limit(concurrency=2)),
        QueueOptions(per_task={"t": Limit(concurrency=2)}),
    ],
    ids=["queue", "key", "task"],
)
async def test_a_new_limit_counts_what_runs_already(
    engine: Engine, clock: Clock, claimant: Claimant, options: QueueOptions
) -> None:
    await engine.jobs.enqueue(some_jobs(6, key="k"), now=clock.now)
    running = await claimant.take(most=3)
    await configure(engine, "q", options, now=clock.now)
    assert await claimant.take() == []
    await claimant.complete(running[0])
    assert await claimant.take() == []
    await claimant.complete(running[1])
    assert len(await claimant.take()) == 1


async def test_a_wider_limit_opens_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    await claimant.take()
    await configure(engine, "q", QueueOptions(concurrency=3), now=clock.now)
    assert len(await claimant.take()) == 2
    await configure(engine, "q", QueueOptions(), now=clock.now)
    assert len(await claimant.take()) == 2


async def test_jobs_behind_a_full_gate_stay_ready(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take()
    assert await states_of(engine, jobs) == [JobState.RUNNING, JobState.READY, JobState.READY]


async def test_a_suspect_that_may_not_run_takes_no_permit(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    child = Claimant(engine, clock, member=claimant.member)
    suspect = await child.take_one()
    lost = LostRun(id=suspect.id, fence=suspect.fence, verdict="suspect")
    await engine.jobs.retire(child.id, [lost], now=clock.now)
    (other,) = await claimant.take()
    assert other.id != suspect.id
    await claimant.complete(other)
    assert ids_of(await claimant.take(suspects=1)) == [suspect.id]
