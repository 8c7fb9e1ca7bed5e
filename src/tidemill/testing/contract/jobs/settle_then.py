"""`jobs.settle`: what happens in the same step, and the next claim in the same trip."""

from typing import Any

import msgspec
import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import ClaimantRetired
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, Failed, Then
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    a_failure,
    a_job,
    completed,
    ids_of,
    job_of,
    settlement,
    snapshot,
    some_jobs,
    states_of,
)

TEMPLATE = a_job()
APPLIED, ALREADY, STALE = Answer.APPLIED, Answer.ALREADY, Answer.STALE


async def test_then_happens_with_the_outcome(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    schedule = Schedule(name="s", timing=Every(seconds=3), job=a_job())
    await engine.schedules.put([schedule], now=clock.now)
    known = a_job(queue="other", body=b"[[1],{}]")
    await engine.jobs.enqueue([a_job(), known], now=clock.now)
    job = await claimant.take_one()
    follow = [a_job(), a_job(delay=SECOND), msgspec.structs.replace(known, body=b"[[2],{}]")]
    then = Then(jobs=tuple(follow), schedule="s", schedule_in=3 * SECOND)
    clock.forward(5)
    assert (await claimant.settle(completed(job, then=then))).answers == [APPLIED]
    assert await states_of(engine, follow[:2]) == [JobState.READY, JobState.SCHEDULED]
    assert (await job_of(engine, known.id)).body == b"[[1],{}]"
    (stored,) = await engine.schedules.list()
    assert stored.next_at == clock.now + 3 * SECOND


async def test_then_does_not_happen_without_the_outcome(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.schedules.put([Schedule(name="s", timing=Every(seconds=3), job=a_job())], now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    lost, done = await claimant.take()
    await claimant.complete(done)
    await claimant.release(lost)
    before = await snapshot(engine, clock)
    answers = (
        await claimant.settle(
            completed(lost, then=Then(jobs=(a_job(),), schedule="s", schedule_in=SECOND)),
            completed(done, then=Then(jobs=(a_job(),), schedule="s", schedule_in=SECOND)),
        )
    ).answers
    assert answers == [STALE, ALREADY]
    assert await snapshot(engine, clock) == before


async def test_then_of_a_failure_and_an_unknown_schedule(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job, follow = await claimant.take_one(), a_job(task="on_dead")
    then = Then(jobs=(follow,), schedule="never-heard-of")
    await claimant.settle(settlement(job, Failed(failure=a_failure()), then=then))
    assert await states_of(engine, [job, follow]) == [JobState.DEAD, JobState.READY]
    assert await engine.schedules.list() == []


@pytest.mark.parametrize(
    ("changes", "sets"),
    [
        ({}, True),
        ({"declared_at": 9}, True),
        ({"timing": Every(seconds=7)}, False),
        ({"job": a_job(priority=1)}, False),
    ],
    ids=["same", "declared again", "another timing", "another job"],
)
async def test_then_sets_no_time_of_a_schedule_that_has_changed(
    engine: Engine, clock: Clock, claimant: Claimant, changes: dict[str, Any], sets: bool
) -> None:
    schedule = Schedule(name="s", timing=Every(seconds=3), job=TEMPLATE, next_at=START)
    await engine.schedules.put([schedule], now=clock.now)
    (stored,) = await engine.schedules.list()
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    one, two = await claimant.take()
    clock.forward(5)
    await engine.schedules.put([msgspec.structs.replace(schedule, **changes)], now=clock.now)
    then = Then(schedule="s", schedule_in=3 * SECOND, schedule_version=stored.version)
    failure = Failed(failure=a_failure())
    for outcome in (completed(one, then=then), settlement(two, failure, then=then)):
        assert (await claimant.settle(outcome)).answers == [APPLIED]
        (stored,) = await engine.schedules.list()
        assert stored.next_at == (clock.now + 3 * SECOND if sets else START)
        clock.forward(1)


async def test_then_sets_no_time_of_a_schedule_that_was_made_anew(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    schedule = Schedule(name="s", timing=Every(seconds=3), job=TEMPLATE, next_at=START)
    await engine.schedules.put([schedule], now=clock.now)
    (stored,) = await engine.schedules.list()
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job = await claimant.take_one()
    clock.forward(5)
    await engine.schedules.remove("s", now=clock.now)
    await engine.schedules.put([schedule], now=clock.now)
    then = Then(schedule="s", schedule_in=3 * SECOND, schedule_version=stored.version)
    await claimant.settle(completed(job, then=then))
    assert [each.next_at for each in await engine.schedules.list()] == [START]


# With a claim


async def test_a_claim_in_the_same_trip(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    first = await claimant.take(most=2)
    settled = await claimant.settle(*map(completed, first), claim=claimant.request(most=1))
    assert settled.claim is not None
    assert (ids_of(settled.claim.jobs), settled.refused) == ([jobs[2].id], None)
    assert await states_of(engine, jobs) == [
        JobState.COMPLETED,
        JobState.COMPLETED,
        JobState.RUNNING,
        JobState.READY,
    ]


async def test_a_claim_sees_what_then_added(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job, follow = await claimant.take_one(), a_job()
    settled = await claimant.settle(completed(job, then=Then(jobs=(follow,))), claim=claimant.request())
    assert settled.claim is not None
    assert ids_of(settled.claim.jobs) == [follow.id]


async def test_a_refused_claim_does_not_undo_the_outcomes(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    job = await claimant.take_one()
    retired = Claimant(engine, clock, member=claimant.member)
    await engine.jobs.retire(retired.id, now=clock.now)
    settled = await claimant.settle(completed(job), claim=retired.request())
    assert settled.answers == [APPLIED]
    assert settled.claim is None
    assert isinstance(settled.refused, ClaimantRetired)
    assert await states_of(engine, [job]) == [JobState.COMPLETED]
