"""`jobs.retire`: a child died under a living supervisor."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import ClaimantRetired
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, ClaimedJob, LostRun, LostRunVerdict
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    ids_of,
    job_of,
    some_jobs,
    states_of,
)


def lost(run: ClaimedJob, verdict: LostRunVerdict, message: str = "signal 11") -> LostRun:
    return LostRun(id=run.id, fence=run.fence, verdict=verdict, message=message)


@pytest.mark.row("A4", "F2")
async def test_a_dead_childs_jobs_are_ready_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    child, sibling = (Claimant(engine, clock, member=claimant.member) for _ in range(2))
    runs = await child.take(most=2)
    other = await sibling.take_one()
    assert await engine.jobs.retire(child.id, now=clock.now) == 2
    assert await engine.jobs.retire(child.id, now=clock.now) == 0
    assert await states_of(engine, [other]) == [JobState.RUNNING]
    for run in runs:
        job = await job_of(engine, run.id)
        assert (job.state, job.seq, job.suspect) == (JobState.READY, run.seq, False)
        assert (job.attempts, job.crashes, job.failure_count) == (0, 0, 0)
    assert await child.complete(runs[0]) == [Answer.STALE]
    with pytest.raises(ClaimantRetired):
        await child.claim()
    assert ids_of(await claimant.take()) == ids_of(jobs[:2])


async def test_a_proven_crash_is_counted_apart_from_failures(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    clock.forward(1)
    assert await engine.jobs.retire(claimant.id, [lost(run, "crash")], now=clock.now) == 1
    job = await job_of(engine, run.id)
    assert (job.state, job.seq, job.attempts) == (JobState.READY, run.seq, 0)
    assert (job.crashes, job.lost_runs, job.suspect) == (1, 0, True)
    (failure,) = job.failures
    assert (failure.kind, failure.message, failure.member) == ("crash", "signal 11", "host:1")
    assert (failure.number, failure.ended_at) == (1, clock.now)


async def test_several_that_had_started_are_suspects(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    *started, waiting = await claimant.take()
    lost_runs = [lost(run, "suspect") for run in started]
    assert await engine.jobs.retire(claimant.id, lost_runs, now=clock.now) == 3
    for run in started:
        job = await job_of(engine, run.id)
        assert (job.state, job.suspect, job.crashes) == (JobState.READY, True, 0)
        assert [failure.kind for failure in job.failures] == ["lost"]
    job = await job_of(engine, waiting.id)
    assert (job.state, job.suspect, job.failures) == (JobState.READY, False, ())


async def test_three_proven_crashes_are_the_end(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    states = []
    for _ in range(3):
        child = Claimant(engine, clock, member=claimant.member)
        run = await child.take_one(suspects=1)
        await engine.jobs.retire(child.id, [lost(run, "crash")], now=clock.now)
        states += await states_of(engine, [run])
    assert states == [JobState.READY, JobState.READY, JobState.DEAD]
    job = await job_of(engine, new.id)
    assert (job.crashes, job.attempts, job.ended_at, job.failure_count) == (3, 0, clock.now, 3)
    assert [failure.kind for failure in job.failures] == ["crash"] * 3
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.dead, counts.window.died) == (1, 1)


async def test_a_lost_run_under_another_fence_is_no_evidence(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    first, second = await claimant.take()
    await claimant.release(first)
    other = await a_claimant(engine, clock, name="other")
    await other.take_one()
    lost_runs = [
        lost(first, "crash"),
        LostRun(id=second.id, fence=first.fence, verdict="crash"),
        LostRun(id=new_id(), fence=9, verdict="crash"),
    ]
    assert await engine.jobs.retire(claimant.id, lost_runs, now=clock.now) == 1
    assert await states_of(engine, [first, second]) == [JobState.RUNNING, JobState.READY]
    assert [(await job_of(engine, run.id)).crashes for run in (first, second)] == [0, 0]


async def test_a_lost_run_under_a_number_that_no_fence_can_be_is_passed_over(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """It stands in a table that the dead child has written over: its jobs go back all the same."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    lost_runs = [LostRun(id=run.id, fence=fence, verdict="crash") for fence in (-1, 2**53, 2**63 - 1)]
    assert await engine.jobs.retire(claimant.id, lost_runs, now=clock.now) == 1
    job = await job_of(engine, run.id)
    assert (job.state, job.crashes) == (JobState.READY, 0)


@pytest.mark.parametrize("verdict", ["crash", "suspect"])
async def test_a_crashed_job_that_was_asked_to_stop_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant, verdict: LostRunVerdict
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    await engine.jobs.retire(claimant.id, [lost(run, verdict)], now=clock.now)
    assert await states_of(engine, [run]) == [JobState.CANCELLED]
