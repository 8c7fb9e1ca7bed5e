"""`jobs.promote` and due times: in order, exactly once, and what expired dies."""

import asyncio

import pytest

from tidemill.engine.protocol import Engine, Promoted
from tidemill.model.jobs.job import JobState
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    ids_of,
    job_of,
    snapshot,
    some_jobs,
    states_of,
)


@pytest.mark.row("A1", "A2")
async def test_due_jobs_stand_in_the_order_of_their_due_times(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    delays = [30, 10, 20, 10, 30, 5]
    jobs = [a_job(delay=delay) for delay in delays]
    await engine.jobs.enqueue(jobs, now=clock.now)
    clock.now += 30
    assert await engine.jobs.promote(now=clock.now) == Promoted(jobs=6, wait=None)
    expected = [jobs[index] for index in (5, 1, 3, 2, 0, 4)]
    assert ids_of(await claimant.take()) == ids_of(expected)


@pytest.mark.row("A1")
async def test_a_claim_promotes_in_the_same_order(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(delay=delay) for delay in (3, 1, 2, 1)]
    for job in jobs:
        await engine.jobs.enqueue([job], now=clock.now)
    clock.now += 9
    assert ids_of(await claimant.take()) == ids_of([jobs[1], jobs[3], jobs[2], jobs[0]])


@pytest.mark.row("A2")
async def test_not_a_moment_too_early(engine: Engine, clock: Clock) -> None:
    job = a_job(delay=SECOND)
    await engine.jobs.enqueue([job], now=clock.now)
    due = clock.now + SECOND
    clock.now = due - 1
    assert await engine.jobs.promote(now=clock.now) == Promoted(jobs=0, wait=1)
    assert await states_of(engine, [job]) == [JobState.SCHEDULED]
    clock.now = due
    assert await engine.jobs.promote(now=clock.now) == Promoted(jobs=1, wait=None)
    record = await job_of(engine, job.id)
    assert (record.state, record.ready_at, record.due_at) == (JobState.READY, due, due)


async def test_wait_is_the_next_due_time_of_any_queue(engine: Engine, clock: Clock) -> None:
    assert await engine.jobs.promote(now=clock.now) == Promoted(jobs=0, wait=None)
    jobs = [a_job(queue=queue, delay=delay) for queue, delay in (("a", 50), ("b", 40), ("c", 60))]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert (await engine.jobs.promote(now=clock.now)).wait == 40
    clock.now += 45
    assert await engine.jobs.promote(now=clock.now) == Promoted(jobs=1, wait=5)


async def test_a_promote_is_bounded_and_says_so(engine: Engine, clock: Clock) -> None:
    jobs = some_jobs(5, delay=1)
    await engine.jobs.enqueue(jobs, now=clock.now)
    clock.now += 1
    assert await engine.jobs.promote(limit=3, now=clock.now) == Promoted(jobs=3, wait=0)
    assert await states_of(engine, jobs) == [JobState.READY] * 3 + [JobState.SCHEDULED] * 2
    second = await engine.jobs.promote(limit=3, now=clock.now)
    assert (second.jobs, second.wait) == (2, None)


async def test_the_bound_holds_over_all_queues(engine: Engine, clock: Clock) -> None:
    for queue in "abc":
        await engine.jobs.enqueue(some_jobs(3, queue=queue, delay=1), now=clock.now)
    clock.now += 1
    moved = [await engine.jobs.promote(limit=4, now=clock.now) for _ in range(3)]
    assert [step.jobs for step in moved] == [4, 4, 1]
    assert [step.wait for step in moved] == [0, 0, None]


@pytest.mark.row("A3")
async def test_a_due_job_becomes_ready_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(10, delay=SECOND)
    await engine.jobs.enqueue(jobs, now=clock.now)
    clock.forward(1)
    assert (await engine.jobs.promote(now=clock.now)).jobs == 10
    before = await snapshot(engine, clock)
    clock.forward(1)
    assert (await engine.jobs.promote(now=clock.now)).jobs == 0
    assert (await snapshot(engine, clock))["jobs"] == before["jobs"]
    assert ids_of(await claimant.take()) == ids_of(jobs)


@pytest.mark.row("A3", "B2")
async def test_many_who_promote_move_each_job_once(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(4)]
    jobs = some_jobs(300, delay=SECOND)
    await clients[0].jobs.enqueue(jobs, now=clock.now)
    clock.forward(1)
    moves = await asyncio.gather(
        *(client.jobs.promote(limit=40, now=clock.now) for client in clients for _ in range(5))
    )
    assert sum(step.jobs for step in moves) == 300
    records = [job for job in await clients[0].inspect.get(ids_of(jobs)) if job]
    assert len({job.seq for job in records}) == 300
    claimant = await a_claimant(clients[1], clock)
    assert ids_of(await claimant.take(most=1_000)) == ids_of(jobs)


@pytest.mark.row("A3")
async def test_claims_and_promotes_together_take_each_due_job_once(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(4)]
    workers = [await a_claimant(client, clock, name=f"w{n}") for n, client in enumerate(clients)]
    jobs = some_jobs(200, delay=SECOND)
    await clients[0].jobs.enqueue(jobs, now=clock.now)
    clock.forward(1)

    async def work(worker: Claimant) -> list[bytes]:
        taken = []
        for _ in range(10):
            taken += ids_of(await worker.take(most=7))
            await worker.engine.jobs.promote(limit=9, now=clock.now)
        return taken

    parts = await asyncio.gather(*map(work, workers))
    taken = [job_id for part in parts for job_id in part]
    assert sorted(taken) == sorted(ids_of(jobs))


async def test_paused_queues_are_promoted_too(engine: Engine, clock: Clock) -> None:
    job = a_job(delay=1)
    await engine.jobs.enqueue([job], now=clock.now)
    await engine.queues.pause("q", now=clock.now)
    clock.now += 1
    assert (await engine.jobs.promote(now=clock.now)).jobs == 1
    assert await states_of(engine, [job]) == [JobState.READY]


# Expiry


async def test_what_expired_dies_wherever_it_waits(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    running, ready = a_job(expires=10), a_job(expires=10)
    later = a_job(expires=10, delay=100)
    blocked = a_job(expires=10, after=(later.id,), parent_died="wait")
    lasting = a_job(expires=11)
    jobs = [running, ready, later, blocked, lasting]
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take_one()
    clock.now += 9
    assert (await engine.jobs.promote(now=clock.now)).jobs == 0
    clock.now += 1
    assert (await engine.jobs.promote(now=clock.now)).jobs == 3
    dead = [JobState.DEAD] * 3
    assert await states_of(engine, jobs) == [JobState.RUNNING, *dead, JobState.READY]
    record = await job_of(engine, blocked.id)
    assert record.ended_at == clock.now
    assert record.error is not None
    assert (record.error.kind, record.attempts) == ("expired", 0)
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.dead, counts.window.died) == (3, 3)


async def test_a_run_in_time_is_not_disturbed_by_expiry(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(expires=10)], now=clock.now)
    run = await claimant.take_one()
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    await claimant.complete(run)
    assert await states_of(engine, [run]) == [JobState.COMPLETED]
