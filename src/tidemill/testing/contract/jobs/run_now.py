"""`jobs.run_now`: what waits for a time waits no longer."""

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState, RunNowAnswer
from tidemill.model.jobs.move import Moves
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    configure,
    ids_of,
    job_of,
    snapshot,
    some_jobs,
)


async def test_a_scheduled_job_is_ready_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    later, sooner = a_job(delay=100 * SECOND), a_job()
    await engine.jobs.enqueue([later, sooner], now=clock.now)
    clock.forward(1)
    moves = Moves()
    answers = await engine.jobs.run_now([later.id], by="ann", moves=moves, now=clock.now)
    assert answers == [RunNowAnswer.READY]
    assert [(move.id, move.state) for move in moves.named] == [(later.id, JobState.READY)]
    job = await job_of(engine, later.id)
    assert (job.state, job.due_at, job.ready_at) == (JobState.READY, None, clock.now)
    assert ids_of(await claimant.take()) == ids_of([sooner, later]), "at the end of its lane"
    (entry,) = await engine.inspect.audit()
    assert (entry.by, entry.action) == ("ann", "run now")


async def test_a_retry_is_not_waited_for(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run, retry_in=100 * SECOND)
    started_at = (await job_of(engine, run.id)).started_at
    assert started_at is not None
    assert await engine.jobs.run_now([run.id], now=clock.now) == [RunNowAnswer.READY]
    assert (await job_of(engine, run.id)).started_at == started_at, (
        "the last run stays visible, as it does at a due time"
    )
    again = await claimant.take_one()
    assert (again.id, again.attempt) == (run.id, 2)


async def test_others_are_left_alone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "gone", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue([*some_jobs(3), a_job(queue="gone")], now=clock.now)
    running, done = await claimant.take(most=2)
    await claimant.complete(done)
    deleted = await claimant.take_one("gone")
    await claimant.complete(deleted)
    blocked = a_job(after=(running.id,), delay=SECOND)
    await engine.jobs.enqueue([blocked], now=clock.now)
    (ready,) = (job.id for job in (await engine.inspect.list(JobFilter(state=JobState.READY))).jobs)
    before = await snapshot(engine, clock)
    ids = [ready, blocked.id, running.id, done.id, deleted.id, new_id()]
    assert await engine.jobs.run_now(ids, by="ann", now=clock.now) == [
        RunNowAnswer.READY,
        RunNowAnswer.BLOCKED,
        RunNowAnswer.RUNNING,
        RunNowAnswer.FINISHED,
        RunNowAnswer.UNKNOWN,
        RunNowAnswer.UNKNOWN,
    ]
    assert await snapshot(engine, clock) == before


async def test_the_same_job_twice_moves_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = a_job(delay=SECOND)
    await engine.jobs.enqueue([new], now=clock.now)
    assert await engine.jobs.run_now([new.id, new.id], now=clock.now) == [RunNowAnswer.READY] * 2
    assert ids_of(await claimant.take()) == [new.id]
    clock.forward(2)
    assert await claimant.take() == [], "its due time means nothing any more"
