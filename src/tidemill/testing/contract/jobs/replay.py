"""`jobs.replay`: finished jobs run again."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import PAYLOAD_LIMIT, Edit, JobState, ReplayAnswer
from tidemill.model.jobs.run import Checkpoint, LogLine, LostRun, Progress
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
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
    states_of,
)

REPLAYED, LIVE, NO_BODY, UNKNOWN = (
    ReplayAnswer.REPLAYED,
    ReplayAnswer.LIVE,
    ReplayAnswer.NO_BODY,
    ReplayAnswer.UNKNOWN,
)


@pytest.mark.row("A5")
async def test_a_dead_letter_runs_again_from_the_start(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(expires=60 * SECOND, body=b"[[1],{}]")], now=clock.now)
    await claimant.fail(await claimant.take_one(), retry_in=0)
    run = await claimant.take_one()
    await claimant.write(run, Progress(value=b"5"), LogLine(number=1, level="info", message="x"))
    await claimant.fail(run)
    clock.forward(3_600)
    assert await engine.jobs.replay([run.id], token=new_id(), now=clock.now) == [REPLAYED]
    job = await job_of(engine, run.id)
    assert (job.state, job.ready_at, job.replays) == (JobState.READY, clock.now, 1)
    assert (job.attempts, job.crashes, job.lost_runs) == (0, 0, 0)
    assert (job.ended_at, job.due_at, job.expires_at) == (None, None, None)
    assert (job.result, job.progress, job.cancel_requested) == (None, None, False)
    assert (len(job.failures), job.failure_count) == (2, 2)
    assert len(await engine.inspect.log(run.id)) == 1
    await claimant.heartbeat()
    again = await claimant.take_one()
    assert (again.attempt, again.body) == (1, b"[[1],{}]")
    await claimant.fail(again)
    failures = (await job_of(engine, run.id)).failures
    assert [(failure.number, failure.attempt) for failure in failures] == [(1, 1), (2, 2), (3, 1)]


async def test_every_final_state_may_be_replayed(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    done, dead, cancelled = await claimant.take()
    await claimant.complete(done)
    await claimant.fail(dead)
    await engine.jobs.cancel([cancelled.id], now=clock.now)
    await claimant.stop(cancelled)
    ids = ids_of([cancelled, dead, done])
    assert await engine.jobs.replay(ids, token=new_id(), now=clock.now) == [REPLAYED] * 3
    assert ids_of(await claimant.take()) == ids
    record = await job_of(engine, cancelled.id)
    assert not record.cancel_requested
    assert (await job_of(engine, done.id)).result is None


async def test_a_replayed_job_stands_at_the_end(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.complete(await claimant.take_one())
    await engine.jobs.replay([jobs[0].id], token=new_id(), now=clock.now)
    assert ids_of(await claimant.take()) == ids_of([*jobs[1:], jobs[0]])


async def test_live_and_unknown_jobs_are_not_replayed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    running, ready, later = a_job(), a_job(), a_job(delay=SECOND)
    blocked = a_job(after=(later.id,))
    await engine.jobs.enqueue([running, ready, later, blocked], now=clock.now)
    await claimant.take_one()
    before = await snapshot(engine, clock)
    ids = [*ids_of([running, ready, later, blocked]), new_id()]
    answers = await engine.jobs.replay(ids, token=new_id(), by="ann", now=clock.now)
    assert answers == [LIVE, LIVE, LIVE, LIVE, UNKNOWN]
    assert await snapshot(engine, clock) == before


async def test_without_a_body_there_is_no_replay(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "small", QueueOptions(keep_body=False), now=clock.now)
    await configure(engine, "gone", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue([a_job(queue="small"), a_job(queue="gone")], now=clock.now)
    small, gone = await claimant.take_one("small"), await claimant.take_one("gone")
    await claimant.complete(small, gone)
    answers = await engine.jobs.replay([small.id, gone.id], token=new_id(), now=clock.now)
    assert answers == [NO_BODY, UNKNOWN]
    assert await states_of(engine, [small, gone]) == [JobState.COMPLETED, None]


async def test_one_token_replays_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    token = new_id()
    assert await engine.jobs.replay([run.id, run.id], token=token, now=clock.now) == [REPLAYED, REPLAYED]
    again = await claimant.take_one()
    assert await engine.jobs.replay([run.id], token=token, now=clock.now) == [REPLAYED]
    assert (await job_of(engine, run.id)).state is JobState.RUNNING
    await claimant.complete(again)
    assert await engine.jobs.replay([run.id], token=token, now=clock.now) == [REPLAYED]
    job = await job_of(engine, run.id)
    assert (job.state, job.replays) == (JobState.COMPLETED, 1)
    assert await engine.jobs.replay([run.id], token=new_id(), now=clock.now) == [REPLAYED]
    job = await job_of(engine, run.id)
    assert (job.state, job.replays) == (JobState.READY, 2)


@pytest.mark.row("B6")
async def test_the_run_before_the_replay_is_stale(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    lost = await claimant.take_one()
    await claimant.release(lost)
    run = await claimant.take_one()
    await claimant.fail(run)
    await engine.jobs.replay([run.id], token=new_id(), now=clock.now)
    before = await snapshot(engine, clock)
    assert (await claimant.complete(lost))[0].value == "stale"
    assert (await claimant.complete(run))[0].value == "already"
    assert await snapshot(engine, clock) == before


async def test_checkpoints_stay_where_there_is_something_to_go_on_with(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    done, dead = await claimant.take()
    step = Checkpoint(name="charge", value=b"1")
    for run in (done, dead):
        await claimant.write(run, step)
    await claimant.complete(done)
    await claimant.fail(dead)
    await engine.jobs.replay([done.id, dead.id], token=new_id(), now=clock.now)
    assert await engine.inspect.checkpoints(done.id) == []
    assert await engine.inspect.checkpoints(dead.id) == [step]


async def test_a_suspect_stays_one(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    for _ in range(3):
        child = Claimant(engine, clock, member=claimant.member)
        run = await child.take_one(suspects=1)
        lost = LostRun(id=run.id, fence=run.fence, verdict="crash")
        await engine.jobs.retire(child.id, [lost], now=clock.now)
    assert (await job_of(engine, new.id)).state is JobState.DEAD
    await engine.jobs.replay([new.id], token=new_id(), now=clock.now)
    job = await job_of(engine, new.id)
    assert (job.state, job.suspect, job.crashes) == (JobState.READY, True, 0)
    assert await claimant.take() == []
    assert len(await claimant.take(suspects=1)) == 1


async def test_a_replay_passes_a_queues_gates_and_lanes(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(key="a"), a_job(key="b")], now=clock.now)
    await claimant.complete(*await claimant.take())
    await configure(engine, "q", QueueOptions(fair_by="key", concurrency=3), now=clock.now)
    await engine.jobs.enqueue([a_job(key="b"), a_job(key="b")], now=clock.now)
    ids = ids_of((await engine.inspect.list(JobFilter(state=JobState.COMPLETED))).jobs)
    await engine.jobs.replay(ids, token=new_id(), now=clock.now)
    assert [job.key for job in await claimant.take()] == ["a", "b", "b"]


SHORT, LONG = b"[[2],{}]", b'[["' + b"x" * 600 + b'"],{}]'


@pytest.mark.parametrize(("before", "after"), [(SHORT, LONG), (LONG, SHORT), (LONG, LONG + b" ")])
async def test_an_edited_job_keeps_its_id_and_its_history(
    engine: Engine, clock: Clock, claimant: Claimant, before: bytes, after: bytes
) -> None:
    await engine.jobs.enqueue([a_job(body=before, key="a")], now=clock.now)
    run = await claimant.take_one()
    await claimant.write(run, LogLine(number=1, level="info", message="x"), Checkpoint(name="c", value=b"1"))
    await claimant.fail(run)
    edit, token = Edit(body=after, key="b"), new_id()
    assert await engine.jobs.replay([run.id], token=token, edit=edit, by="ann", now=clock.now) == [REPLAYED]
    job = await job_of(engine, run.id)
    assert (job.state, job.replays, job.attempts) == (JobState.READY, 1, 0)
    assert (job.body, job.key, job.failure_count) == (after, "b", 1)
    assert len(await engine.inspect.log(run.id)) == 1
    assert len(await engine.inspect.checkpoints(run.id)) == 1
    assert [entry.action for entry in await engine.inspect.audit()] == ["edit"]
    again = await claimant.take_one()
    assert (again.id, again.body, again.key) == (run.id, after, "b")
    assert await engine.jobs.replay([run.id], token=token, edit=edit, now=clock.now) == [REPLAYED]
    assert (await job_of(engine, run.id)).state is JobState.RUNNING


async def test_an_edited_job_stands_in_the_lane_of_its_new_key(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    limited = QueueOptions(per_key=Limit(concurrency=1))
    await configure(engine, "q", limited, now=clock.now)
    await engine.jobs.enqueue([a_job(key="a"), a_job(key="b")], now=clock.now)
    dead, _ = await claimant.take()
    await claimant.fail(dead)
    await engine.jobs.replay([dead.id], token=new_id(), edit=Edit(body=SHORT, key="b"), now=clock.now)
    assert await claimant.take() == []
    await engine.jobs.enqueue([a_job(key="a")], now=clock.now)
    assert [job.key for job in await claimant.take()] == ["a"]


async def test_an_edit_without_a_key_takes_the_key_away(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(key="a")], now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run)
    await engine.jobs.replay([run.id], token=new_id(), edit=Edit(body=SHORT), now=clock.now)
    assert (await job_of(engine, run.id)).key is None
    assert (await claimant.take_one()).key is None


async def test_what_cannot_be_edited_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    one, other = await claimant.take(most=2)
    await claimant.fail(one, other)
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput, match="one job"):
        await engine.jobs.replay([one.id, other.id], token=new_id(), edit=Edit(body=SHORT), now=clock.now)
    large = Edit(body=b"x" * (PAYLOAD_LIMIT + 1))
    with pytest.raises(PayloadTooLarge):
        await engine.jobs.replay([one.id], token=new_id(), edit=large, now=clock.now)
    assert await snapshot(engine, clock) == before
