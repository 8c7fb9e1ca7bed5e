"""`jobs.release`: a job returns to its lane without using an attempt."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, ClaimedJob, Release
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
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


async def reasons_of(engine: Engine, *runs: ClaimedJob) -> list[str | None]:
    return [(await job_of(engine, run.id)).reason for run in runs]


async def test_a_reason_is_shown_until_the_next_claim(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    drained, snoozed, plain = await claimant.take()
    assert await claimant.release(drained, reason="drain") == [APPLIED]
    assert await claimant.release(snoozed, delay=SECOND, reason="snooze") == [APPLIED]
    assert await claimant.release(plain) == [APPLIED]
    assert await reasons_of(engine, drained, snoozed, plain) == ["drain", "snooze", None]
    page = await engine.inspect.list(JobFilter())
    assert {job.id: job.reason for job in page.jobs} == {
        drained.id: "drain",
        snoozed.id: "snooze",
        plain.id: None,
    }
    clock.forward(SECOND)
    await engine.jobs.promote(now=clock.now)
    assert await reasons_of(engine, snoozed) == ["snooze"]
    again = await claimant.take()
    assert await reasons_of(engine, *again) == [None, None, None]
    await claimant.release(*again)
    assert await reasons_of(engine, *again) == [None, None, None]


async def test_a_repeated_release_changes_no_reason(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    assert await claimant.release(run, reason="drain") == [APPLIED]
    assert await claimant.release(run, reason="snooze") == [ALREADY]
    assert await reasons_of(engine, run) == ["drain"]


async def test_what_ends_a_run_otherwise_leaves_no_reason(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    first = await claimant.take()
    await claimant.release(*first, reason="drain")
    failed, completed, lost, answerless = await claimant.take()
    await claimant.fail(failed, retry_in=SECOND)
    await claimant.complete(completed)
    await claimant.heartbeat(held=(lost.fence,))  # the answer that had the last one did not arrive
    assert await reasons_of(engine, failed, completed, answerless) == [None] * 3
    await engine.jobs.retire(claimant.id, now=clock.now)
    assert await reasons_of(engine, lost) == [None]


async def test_a_job_that_ends_or_is_replayed_has_no_reason(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    waiting, asked = await claimant.take()
    await engine.jobs.cancel([asked.id], now=clock.now)
    await claimant.release(waiting, asked, reason="unknown task")
    assert await reasons_of(engine, waiting, asked) == ["unknown task", None]
    await engine.jobs.cancel([waiting.id], now=clock.now)
    assert await reasons_of(engine, waiting) == [None]
    await engine.jobs.replay([waiting.id, asked.id], token=new_id(), now=clock.now)
    assert await reasons_of(engine, waiting, asked) == [None, None]


async def test_snoozes_are_counted_once_each_and_brought_by_the_next_claim(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    first, other = await claimant.take()
    assert (first.snoozes, other.snoozes) == (0, 0)
    await claimant.release(other, reason="drain")
    for number in (1, 2, 3):
        delay = None if number == 2 else SECOND
        assert await claimant.release(first, delay=delay, reason="snooze") == [APPLIED]
        assert await claimant.release(first, delay=delay, reason="snooze") == [ALREADY]
        clock.forward(SECOND)
        assert (await job_of(engine, first.id)).snoozes == number
        runs = {run.id: run for run in await claimant.take()}
        first = runs[first.id]
        assert first.snoozes == number
        assert first.attempt == 1, "none of them used an attempt"
        if other.id in runs:
            assert runs[other.id].snoozes == 0
    assert (await job_of(engine, other.id)).snoozes == 0


async def test_a_number_of_snoozes_outlives_a_lost_run_and_a_retry_and_not_a_replay(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.release(await claimant.take_one(), reason="snooze")
    run = await claimant.take_one()
    await claimant.fail(run, retry_in=0)
    run = await claimant.take_one()
    assert (run.snoozes, run.attempt) == (1, 2)
    await claimant.heartbeat(held=())  # its answer did not arrive
    run = await claimant.take_one()
    assert run.snoozes == 1
    await claimant.fail(run)
    assert (await job_of(engine, run.id)).snoozes == 1
    await engine.jobs.replay([run.id], token=new_id(), now=clock.now)
    assert (await claimant.take_one()).snoozes == 0


async def test_a_job_that_was_asked_to_stop_does_not_snooze(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    assert await claimant.release(run, delay=SECOND, reason="snooze") == [APPLIED]
    job = await job_of(engine, run.id)
    assert (job.state, job.snoozes) == (JobState.CANCELLED, 0)
