"""`jobs.cancel`: what has not started never starts, what runs is told to stop."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import CancelAnswer, JobState
from tidemill.model.member import StopRequest
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    job_of,
    snapshot,
    some_jobs,
    states_of,
)

CANCELLED, ASKED, FINISHED, UNKNOWN = (
    CancelAnswer.CANCELLED,
    CancelAnswer.ASKED,
    CancelAnswer.FINISHED,
    CancelAnswer.UNKNOWN,
)


@pytest.mark.row("B11")
async def test_what_has_not_started_never_starts(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    ready, later = a_job(), a_job(delay=SECOND)
    blocked = a_job(after=(later.id,))
    jobs = [ready, later, blocked]
    await engine.jobs.enqueue(jobs, now=clock.now)
    clock.forward(0.5)
    answers = await engine.jobs.cancel([job.id for job in jobs], now=clock.now)
    assert answers == [CANCELLED] * 3
    for job in jobs:
        record = await job_of(engine, job.id)
        assert (record.state, record.ended_at, record.attempts) == (JobState.CANCELLED, clock.now, 0)
    clock.forward(60)
    await engine.jobs.promote(now=clock.now)
    assert await claimant.take() == []


@pytest.mark.row("B11")
async def test_what_runs_is_told_by_the_next_heartbeat(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    run, _ = await claimant.take()
    other = await a_claimant(engine, clock, name="other")
    assert await engine.jobs.cancel([run.id], now=clock.now) == [ASKED]
    record = await job_of(engine, run.id)
    assert (record.state, record.cancel_requested) == (JobState.RUNNING, True)
    assert (await claimant.heartbeat()).stop_requests == [StopRequest(run.id, run.fence)]
    assert (await claimant.heartbeat()).stop_requests == [StopRequest(run.id, run.fence)]
    assert (await other.heartbeat()).stop_requests == []
    await claimant.stop(run)
    assert (await claimant.heartbeat()).stop_requests == []


async def test_finished_and_unknown_jobs_are_left_alone(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "gone", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue([a_job(), a_job(), a_job(queue="gone")], now=clock.now)
    done, dead = await claimant.take()
    await claimant.complete(done)
    await claimant.fail(dead)
    deleted = await claimant.take_one("gone")
    await claimant.complete(deleted)
    before = await snapshot(engine, clock)
    ids = [done.id, dead.id, new_id()]
    assert await engine.jobs.cancel(ids, by="ann", now=clock.now) == [FINISHED, FINISHED, UNKNOWN]
    assert await engine.jobs.cancel([deleted.id], by="ann", now=clock.now) in ([FINISHED], [UNKNOWN])
    assert await snapshot(engine, clock) == before


async def test_a_repeat_answers_the_same(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    run = await claimant.take_one()
    ids = [run.id, jobs[1].id, jobs[1].id]
    assert await engine.jobs.cancel(ids, by="ann", now=clock.now) == [ASKED, CANCELLED, CANCELLED]
    clock.forward(1)
    before = await snapshot(engine, clock)
    assert await engine.jobs.cancel(ids, by="ann", now=clock.now) == [ASKED, CANCELLED, CANCELLED]
    assert await snapshot(engine, clock) == before


@pytest.mark.row("B11")
async def test_a_job_with_a_stop_request_never_runs_again(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    jobs = await claimant.take()
    await engine.jobs.cancel([job.id for job in jobs], now=clock.now)
    await claimant.release(jobs[0])
    await claimant.fail(jobs[1], retry_in=0)
    await engine.jobs.retire(claimant.id, now=clock.now)
    assert await states_of(engine, jobs) == [JobState.CANCELLED] * 3
    assert await (await a_claimant(engine, clock, name="other")).take() == []


async def test_cancelled_jobs_are_counted(engine: Engine, clock: Clock) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await engine.jobs.cancel([job.id for job in jobs], now=clock.now)
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.ready, counts.cancelled, counts.window.cancelled) == (0, 3, 3)
