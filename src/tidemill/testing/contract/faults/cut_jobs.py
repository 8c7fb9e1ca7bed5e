"""Lost replies of the facet `jobs`."""

from tidemill.engine.protocol import Engine, Promoted, Pruned, Reclaimed, Settled
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import CancelAnswer, DropAnswer, Edit, ReplayAnswer, RunNowAnswer, Stored
from tidemill.model.jobs.run import (
    Answer,
    Checkpoint,
    Claim,
    ClaimedJob,
    Failed,
    LogLine,
    LostRun,
    Note,
    Progress,
    Release,
    Started,
    Then,
)
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.queues.queue import Keep, QueueOptions, Rate
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import SECOND
from tidemill.testing.contract.faults.cut import Cut, Stage, known, scenario, too_late
from tidemill.testing.contract.fixtures import (
    a_claimant,
    a_failure,
    a_job,
    completed,
    configure,
    ids_of,
    settlement,
    some_jobs,
)


@scenario
async def jobs_enqueue(stage: Stage) -> Cut:
    parent = a_job()
    jobs = [parent, a_job(delay=SECOND), a_job(after=(parent.id,)), a_job(queue="new", key="k")]
    return Cut(lambda engine: engine.jobs.enqueue(jobs, now=stage.now), lambda _: known(jobs))


@scenario
async def jobs_enqueue__when_half_was_known(stage: Stage) -> Cut:
    jobs = some_jobs(4)
    await stage.engine.jobs.enqueue(jobs[1:3], now=stage.now)
    return Cut(lambda engine: engine.jobs.enqueue(jobs, now=stage.now), lambda _: known(jobs))


@scenario
async def jobs_enqueue__of_unique_keys(stage: Stage) -> Cut:
    there, replaced = a_job(unique=UniqueKey(key="a")), a_job(unique=UniqueKey(key="b", until="start"))
    await stage.engine.jobs.enqueue([there, replaced], now=stage.now)
    again = UniqueKey(key="b", until="start", on_conflict="replace")
    jobs = [
        a_job(unique=UniqueKey(key="a")),
        a_job(unique=again, delay=SECOND, body=b"[[2],{}]"),
        a_job(unique=UniqueKey(key="c", on_conflict="refuse")),
        a_job(unique=UniqueKey(key="a", period=SECOND)),
        a_job(),
    ]
    ids = [there.id, replaced.id, *ids_of(jobs[2:])]
    return Cut(
        lambda engine: engine.jobs.enqueue(jobs, now=stage.now),
        lambda _: [Stored(job_id, False) for job_id in ids],
    )


@scenario
async def jobs_settle__of_a_unique_key(stage: Stage) -> Cut:
    for key in "ab":
        await stage.engine.jobs.enqueue([a_job(unique=UniqueKey(key=key, until="start"))], now=stage.now)
    done, retried = await stage.claimant.take()
    settlements = [completed(done), settlement(retried, Failed(failure=a_failure(), retry_in=SECOND))]
    await stage.engine.jobs.enqueue([a_job(unique=UniqueKey(key="a"))], now=stage.now)
    return Cut(
        lambda engine: engine.jobs.settle(settlements, now=stage.now),
        lambda _: Settled(answers=[Answer.ALREADY] * 2),
    )


@scenario
async def jobs_claim(stage: Stage) -> Cut:
    options = QueueOptions(concurrency=9, rate=Rate(9, per=60.0), fair_by="key")
    await configure(stage.engine, "q", options, now=stage.now)
    await stage.engine.jobs.enqueue([a_job(key=key) for key in "aabbcc"], now=stage.now)
    request = stage.claimant.request(most=4)

    async def claim(engine: Engine) -> list[ClaimedJob]:
        return (await engine.jobs.claim(request, now=stage.now)).jobs

    return Cut(claim, too_late)


@scenario
async def jobs_claim__by_id(stage: Stage) -> Cut:
    jobs = some_jobs(3)
    await stage.engine.jobs.enqueue(jobs, now=stage.now)
    request = stage.claimant.request(ids=tuple(ids_of(jobs[1:])))

    async def claim(engine: Engine) -> object:
        return (await engine.jobs.claim(request, now=stage.now)).jobs

    return Cut(claim)


@scenario
async def jobs_claim__of_who_does_not_know_all_tasks(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job(task) for task in ("new", "old") * 2], now=stage.now)
    request = stage.claimant.request(unknown=("new",))

    async def claim(engine: Engine) -> object:
        return (await engine.jobs.claim(request, now=stage.now)).jobs

    return Cut(claim)


@scenario
async def jobs_claim__that_only_set_aside(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job("new"), a_job("new", delay=5)], now=stage.now)
    request = stage.claimant.request(unknown=("new",))
    nothing = Claim([], wait=5, now=stage.now)
    return Cut(lambda engine: engine.jobs.claim(request, now=stage.now), lambda _: nothing)


@scenario
async def jobs_claim__that_took_nothing(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job(delay=5)], now=stage.now)
    request = stage.claimant.request()
    nothing = Claim([], wait=5, now=stage.now)
    return Cut(lambda engine: engine.jobs.claim(request, now=stage.now), lambda _: nothing, changes=False)


@scenario
async def jobs_settle(stage: Stage) -> Cut:
    await stage.engine.schedules.put(
        [Schedule(name="s", timing=Every(seconds=1), job=a_job())], now=stage.now
    )
    await stage.engine.jobs.enqueue(some_jobs(4), now=stage.now)
    done, dead, retried, released = await stage.claimant.take()
    child = a_job(after=(done.id,))
    await stage.engine.jobs.enqueue([child], now=stage.now)
    await stage.claimant.release(released)
    then = Then(jobs=(a_job(),), schedule="s", schedule_in=SECOND)
    settlements = [
        completed(done, b"7", ran=5, then=then),
        settlement(dead, Failed(failure=a_failure())),
        settlement(retried, Failed(failure=a_failure(), retry_in=SECOND)),
        completed(released),
    ]
    answers = [Answer.ALREADY, Answer.ALREADY, Answer.ALREADY, Answer.STALE]
    return Cut(
        lambda engine: engine.jobs.settle(settlements, now=stage.now), lambda _: Settled(answers=answers)
    )


@scenario
async def jobs_settle__with_a_claim(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(5), now=stage.now)
    settlements = [completed(run) for run in await stage.claimant.take(most=2)]
    request = stage.claimant.request(most=2)

    async def settle(engine: Engine) -> object:
        settled = await engine.jobs.settle(settlements, claim=request, now=stage.now)
        assert settled.claim is not None
        return settled.answers, settled.claim.jobs

    return Cut(settle, lambda first: ([Answer.ALREADY] * 2, first[1]))


@scenario
async def jobs_settle__of_a_tombstone(stage: Stage) -> Cut:
    await configure(stage.engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=stage.now)
    await stage.engine.jobs.enqueue([a_job()], now=stage.now)
    settlements = [completed(await stage.claimant.take_one())]
    answer = Settled(answers=[Answer.ALREADY])
    return Cut(lambda engine: engine.jobs.settle(settlements, now=stage.now), lambda _: answer)


@scenario
async def jobs_write(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job()], now=stage.now)
    run = await stage.claimant.take_one()
    entries = (
        Started(),
        Progress(value=b"1"),
        LogLine(number=1, level="info", message="x"),
        Checkpoint(name="a", value=b"1"),
    )
    notes = [Note(id=run.id, fence=run.fence, entry=entry) for entry in entries]
    return Cut(lambda engine: engine.jobs.write(notes, now=stage.now))


@scenario
async def jobs_release(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    plain, delayed, asked = await stage.claimant.take()
    await stage.engine.jobs.cancel([asked.id], now=stage.now)
    releases = [
        Release(id=plain.id, fence=plain.fence, reason="drain"),
        Release(id=delayed.id, fence=delayed.fence, delay=SECOND, reason="snooze"),
        Release(id=asked.id, fence=asked.fence),
    ]
    return Cut(lambda engine: engine.jobs.release(releases, now=stage.now), lambda _: [Answer.ALREADY] * 3)


@scenario
async def jobs_cancel(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    running, done = await stage.claimant.take(most=2)
    await stage.claimant.complete(done)
    waiting = a_job(delay=SECOND)
    await stage.engine.jobs.enqueue([waiting, a_job(after=(waiting.id,))], now=stage.now)
    ids = [running.id, done.id, waiting.id, new_id()]
    answers = [CancelAnswer.ASKED, CancelAnswer.FINISHED, CancelAnswer.CANCELLED, CancelAnswer.UNKNOWN]
    return Cut(lambda engine: engine.jobs.cancel(ids, by="ann", now=stage.now), lambda _: answers)


@scenario
async def jobs_run_now(stage: Stage) -> Cut:
    later, parent = a_job(delay=SECOND), a_job(delay=SECOND)
    blocked = a_job(after=(parent.id,))
    await stage.engine.jobs.enqueue([later, parent, blocked], now=stage.now)
    ids = [later.id, blocked.id, new_id()]
    answers = [RunNowAnswer.READY, RunNowAnswer.BLOCKED, RunNowAnswer.UNKNOWN]
    return Cut(lambda engine: engine.jobs.run_now(ids, by="ann", now=stage.now), lambda _: answers)


@scenario
async def jobs_replay__edited(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job(key="a")], now=stage.now)
    dead = await stage.claimant.take_one()
    await stage.claimant.fail(dead)
    edit, token = Edit(body=b"[[2],{}]", key="b"), new_id()
    return Cut(
        lambda engine: engine.jobs.replay([dead.id], token=token, edit=edit, by="ann", now=stage.now),
        lambda _: [ReplayAnswer.REPLAYED],
    )


@scenario
async def jobs_replay(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    done, dead, running = await stage.claimant.take()
    await stage.claimant.complete(done)
    await stage.claimant.fail(dead)
    ids, token = [done.id, dead.id, running.id], new_id()
    answers = [ReplayAnswer.REPLAYED, ReplayAnswer.REPLAYED, ReplayAnswer.LIVE]
    return Cut(
        lambda engine: engine.jobs.replay(ids, token=token, by="ann", now=stage.now), lambda _: answers
    )


@scenario
async def jobs_drop(stage: Stage) -> Cut:
    parent = a_job()
    await stage.engine.jobs.enqueue([parent, a_job()], now=stage.now)
    await stage.engine.jobs.enqueue([a_job(after=(parent.id,), parent_died="wait")], now=stage.now)
    dead, running = await stage.claimant.take()
    await stage.claimant.fail(dead)
    ids = [dead.id, running.id]
    answers = [DropAnswer.UNKNOWN, DropAnswer.LIVE]
    return Cut(lambda engine: engine.jobs.drop(ids, by="ann", now=stage.now), lambda _: answers)


@scenario
async def jobs_watch(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(2), now=stage.now)
    run, waiting = await stage.claimant.take()
    await stage.claimant.complete(run)
    ids = [run.id, waiting.id, new_id()]
    return Cut(
        lambda engine: engine.jobs.watch(ids, waiter="w", ttl=SECOND, now=stage.now),
        changes=False,
    )


@scenario
async def jobs_promote(stage: Stage) -> Cut:
    jobs = [a_job(delay=1), a_job(delay=9), a_job(expires=1)]
    await stage.engine.jobs.enqueue(jobs, now=stage.now)
    stage.clock.now += 1
    return Cut(lambda engine: engine.jobs.promote(now=stage.now), lambda _: Promoted(jobs=0, wait=8))


@scenario
async def jobs_retire(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    crashed, suspect, _ = await stage.claimant.take()
    lost_runs = [
        LostRun(id=crashed.id, fence=crashed.fence, verdict="crash"),
        LostRun(id=suspect.id, fence=suspect.fence, verdict="suspect"),
    ]
    return Cut(lambda engine: engine.jobs.retire(stage.claimant.id, lost_runs, now=stage.now), lambda _: 0)


@scenario
async def jobs_reclaim(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    await stage.claimant.take()
    sweeper = await a_claimant(stage.engine, stage.clock, name="sweeper")
    for _ in range(6):
        stage.clock.forward(2)
        await sweeper.heartbeat()
    return Cut(
        lambda engine: engine.jobs.reclaim(sweeper.member.id, now=stage.now),
        lambda _: Reclaimed(entitled=True, jobs=0, gone=[]),
    )


@scenario
async def jobs_prune(stage: Stage) -> Cut:
    await configure(stage.engine, "q", QueueOptions(keep_completed=Keep(count=1)), now=stage.now)
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    await stage.claimant.complete(*await stage.claimant.take())
    return Cut(lambda engine: engine.jobs.prune(now=stage.now), lambda _: Pruned(jobs=0, more=False))
