"""`jobs.release`: a job returns to its lane without using an attempt."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, Release
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    ids_of,
    job_of,
    snapshot,
    some_jobs,
    states_of,
)

APPLIED, ALREADY, STALE = Answer.APPLIED, Answer.ALREADY, Answer.STALE


@pytest.mark.row("A1")
async def test_a_released_job_keeps_its_place(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    first, second = await claimant.take(most=2)
    clock.forward(1)
    assert await claimant.release(second, first) == [APPLIED, APPLIED]
    job = await job_of(engine, first.id)
    assert (job.state, job.seq, job.attempts, job.failure_count) == (JobState.READY, first.seq, 0, 0)
    assert job.ended_at is None
    again = await claimant.take()
    assert ids_of(again) == ids_of(jobs)
    assert [run.attempt for run in again] == [1] * 4


async def test_a_release_with_a_delay_waits(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    run = await claimant.take_one()
    clock.forward(1)
    assert await claimant.release(run, delay=5) == [APPLIED]
    job = await job_of(engine, run.id)
    assert (job.state, job.due_at, job.attempts) == (JobState.SCHEDULED, clock.now + 5, 0)
    clock.now += 5
    assert [taken.attempt for taken in await claimant.take()] == [1, 1]


async def test_a_delayed_release_loses_its_place(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.release(await claimant.take_one(), delay=1)
    clock.now += 1
    assert ids_of(await claimant.take()) == ids_of([*jobs[1:], jobs[0]])


@pytest.mark.row("B11")
@pytest.mark.parametrize("delay", [None, SECOND])
async def test_a_job_that_was_asked_to_stop_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant, delay: int | None
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    clock.forward(1)
    assert await claimant.release(run, delay=delay) == [APPLIED]
    job = await job_of(engine, run.id)
    assert (job.state, job.ended_at, job.attempts) == (JobState.CANCELLED, clock.now, 0)
    assert await claimant.release(run, delay=delay) == [ALREADY]


async def test_released_before_by_us_or_for_us(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    ours, delayed, for_us = await claimant.take()
    await claimant.release(ours)
    await claimant.release(delayed, delay=SECOND)
    await claimant.heartbeat(held=())
    before = await snapshot(engine, clock)
    assert await claimant.release(ours, delayed, for_us) == [ALREADY] * 3
    assert await snapshot(engine, clock) == before


@pytest.mark.row("B6")
async def test_stale_releases_change_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    settled, retried, taken_over = await claimant.take()
    await claimant.complete(settled)
    await claimant.fail(retried, retry_in=SECOND)
    await claimant.release(taken_over)
    other = await a_claimant(engine, clock, name="other")
    await other.take_one()
    before = await snapshot(engine, clock)
    assert await claimant.release(settled, retried, taken_over) == [STALE] * 3
    unknown = Release(id=new_id(), fence=settled.fence)
    assert await engine.jobs.release([unknown], now=clock.now) == [STALE]
    assert await snapshot(engine, clock) == before


async def test_the_same_release_twice_in_one_call(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    assert await claimant.release(run, run) == [APPLIED, ALREADY]
    assert await states_of(engine, [run]) == [JobState.READY]


async def test_a_replayed_job_is_no_longer_ours_to_release(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    await engine.jobs.replay([run.id], token=new_id(), now=clock.now)
    assert await claimant.release(run) == [STALE]
