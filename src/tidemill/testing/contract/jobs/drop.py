"""`jobs.drop`: finished jobs are deleted with everything kept about them."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import DropAnswer, JobState
from tidemill.model.jobs.run import Checkpoint, LogLine
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, ids_of, snapshot, some_jobs, states_of

DROPPED, LIVE, UNKNOWN = DropAnswer.DROPPED, DropAnswer.LIVE, DropAnswer.UNKNOWN


@pytest.mark.row("A5", "C3")
async def test_finished_jobs_go_with_all_that_was_kept(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    done, dead, cancelled = runs = await claimant.take()
    for run in runs:
        await claimant.write(
            run, LogLine(number=1, level="info", message="x"), Checkpoint(name="a", value=b"1")
        )
    await claimant.complete(done)
    await claimant.fail(dead)
    await claimant.stop(cancelled)
    ids = ids_of(runs)
    assert await engine.jobs.drop(ids, now=clock.now) == [DROPPED] * 3
    assert await engine.inspect.get(ids) == [None] * 3
    for job_id in ids:
        assert await engine.inspect.log(job_id) == []
        assert await engine.inspect.checkpoints(job_id) == []
    assert await engine.jobs.watch(ids, waiter="w", ttl=SECOND, now=clock.now) == [None] * 3


async def test_live_jobs_stay(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    running, ready, later = a_job(), a_job(), a_job(delay=SECOND)
    blocked = a_job(after=(later.id,))
    jobs = [running, ready, later, blocked]
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take_one()
    before = await snapshot(engine, clock)
    answers = await engine.jobs.drop([*ids_of(jobs), new_id()], by="ann", now=clock.now)
    assert answers == [LIVE, LIVE, LIVE, LIVE, UNKNOWN]
    assert await snapshot(engine, clock) == before


async def test_a_repeat_finds_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    assert await engine.jobs.drop([run.id, run.id], now=clock.now) == [DROPPED, UNKNOWN]
    assert await engine.jobs.drop([run.id], now=clock.now) == [UNKNOWN]


@pytest.mark.row("C3")
async def test_a_drop_does_not_falsify_the_window(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    runs = await claimant.take()
    await claimant.complete(*runs)
    await engine.jobs.drop(ids_of(runs), now=clock.now)
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.completed, counts.window.completed) == (0, 3)


async def test_a_child_that_waited_for_a_replay_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_job()
    child = a_job(after=(parent.id,), parent_died="wait")
    grandchild = a_job(after=(child.id,))
    await engine.jobs.enqueue([parent, child, grandchild], now=clock.now)
    await claimant.fail(await claimant.take_one())
    assert await states_of(engine, [child]) == [JobState.BLOCKED]
    assert await engine.jobs.drop([parent.id], now=clock.now) == [DROPPED]
    assert await states_of(engine, [child, grandchild]) == [JobState.CANCELLED] * 2


async def test_a_child_done_with_its_parent_does_not_miss_it(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    first, second = a_job(priority=0), a_job(queue="later")
    child = a_job(after=(first.id, second.id), parent_died="wait")
    await engine.jobs.enqueue([first, second, child], now=clock.now)
    await claimant.complete(await claimant.take_one())
    assert await engine.jobs.drop([first.id], now=clock.now) == [DROPPED]
    assert await states_of(engine, [child]) == [JobState.BLOCKED]
    await claimant.complete(await claimant.take_one("later"))
    assert await states_of(engine, [child]) == [JobState.READY]
