"""Operations that `test_killed` kills, beyond those of the contract's table of lost replies: each makes
its engine do everything that may hang on one call."""

import msgspec

from tidemill.engine.protocol import Engine, Pruned, Reclaimed
from tidemill.model.jobs.job import DropAnswer
from tidemill.model.jobs.run import (
    Answer,
    ClaimedJob,
    Failed,
    LogLine,
    LostRun,
    LostRunVerdict,
    Release,
    Stopped,
    Then,
)
from tidemill.model.member import ClaimantHeartbeat
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import DAY, SECOND
from tidemill.testing.contract.faults import cut_facets, cut_jobs  # noqa: F401  (they fill the table)
from tidemill.testing.contract.faults.cut import SCENARIOS, Cut, Scenario, Stage, too_late
from tidemill.testing.contract.faults.cut import known as stored_before
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

LIMITED = QueueOptions(concurrency=4, rate=Rate(90, per=60.0), per_key=Limit(concurrency=1), fair_by="key")


async def jobs_enqueue__a_family(stage: Stage) -> Cut:
    await configure(stage.engine, "fair", LIMITED, now=stage.now)
    dead, done, known = some_jobs(3)
    await stage.engine.jobs.enqueue([dead, done, known], now=stage.now)
    first, second = await stage.claimant.take(most=2)
    await stage.claimant.fail(first)
    await stage.claimant.complete(second)
    parent = a_job(queue="fair", key="a")
    jobs = [
        parent,
        known,
        a_job(after=(parent.id, known.id)),
        a_job(after=(dead.id,)),
        a_job(after=(dead.id, parent.id), parent_died="run"),
        a_job(after=(done.id,), queue="new", delay=SECOND),
        *(a_job(queue="fair", key=key) for key in "abab"),
        a_job(expires=SECOND, headers=b'{"tags":["x"]}'),
    ]
    return Cut(lambda engine: engine.jobs.enqueue(jobs, now=stage.now), lambda _: stored_before(jobs))


async def jobs_claim__that_tidies_up(stage: Stage) -> Cut:
    """Jobs come due, one has expired, the queue was given another shape, a gate fills."""
    jobs = [a_job(key=key) for key in "aabbc"]
    late = [a_job(key="d", delay=SECOND), a_job(key="a", delay=SECOND), a_job(key="a", expires=SECOND)]
    await stage.engine.jobs.enqueue([*jobs, *late], now=stage.now)
    await configure(stage.engine, "q", LIMITED, now=stage.now)
    stage.clock.forward(1)
    request = stage.claimant.request(most=6)

    async def claim(engine: Engine) -> list[ClaimedJob]:
        return (await engine.jobs.claim(request, now=stage.now)).jobs

    return Cut(claim, too_late)


async def jobs_settle__and_all_that_follows(stage: Stage) -> Cut:
    """Outcomes of every kind behind gates, with children and waiters, a follow-up, and the next batch."""
    schedule = Schedule(name="s", timing=Every(seconds=9), job=a_job())
    await stage.engine.schedules.put([schedule], now=stage.now)
    await configure(stage.engine, "q", LIMITED, now=stage.now)
    await configure(stage.engine, "gone", QueueOptions(keep_completed=Keep(count=0)), now=stage.now)
    await stage.engine.jobs.enqueue([a_job(key=key) for key in "aabbccd"], now=stage.now)
    await stage.engine.jobs.enqueue([a_job(queue="gone")], now=stage.now)
    runs = await stage.claimant.take("q", "gone", most=5)
    assert len(runs) == 5
    children = [a_job(after=(run.id,)) for run in runs]
    await stage.engine.jobs.enqueue([*children, a_job(after=(children[1].id,))], now=stage.now)
    await stage.engine.jobs.watch(ids_of(runs), waiter="w", ttl=SECOND, now=stage.now)
    await stage.engine.jobs.cancel([runs[3].id], now=stage.now)
    then = Then(jobs=(a_job(key="z"), a_job(queue="new")), schedule="s", schedule_in=SECOND)
    settlements = [
        completed(runs[0], b"7", ran=5, then=then),
        settlement(runs[1], Failed(failure=a_failure())),
        settlement(runs[2], Failed(failure=a_failure(), retry_in=SECOND)),
        settlement(runs[3], Stopped()),
        completed(runs[4]),
    ]
    request = stage.claimant.request("q", "gone", most=5)

    async def settle(engine: Engine) -> object:
        settled = await engine.jobs.settle(settlements, claim=request, now=stage.now)
        assert settled.claim is not None
        return settled.answers, settled.claim.jobs

    return Cut(settle, lambda first: ([Answer.ALREADY] * 5, too_late(first[1])))


async def jobs_settle__a_plain_batch(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(40), now=stage.now)
    settlements = [completed(run) for run in await stage.claimant.take(most=20)]
    request = stage.claimant.request(most=20)

    async def settle(engine: Engine) -> object:
        settled = await engine.jobs.settle(settlements, claim=request, now=stage.now)
        assert settled.claim is not None
        return settled.answers, settled.claim.jobs

    return Cut(settle, lambda first: ([Answer.ALREADY] * 20, first[1]))


async def jobs_settle__failures(stage: Stage) -> Cut:
    jobs = some_jobs(3)
    children = [a_job(after=(jobs[0].id,), parent_died=died) for died in ("cancel", "run", "wait")]
    await stage.engine.jobs.enqueue([*jobs, *children], now=stage.now)
    runs = await stage.claimant.take()
    settlements = [
        settlement(runs[0], Failed(failure=a_failure())),
        settlement(runs[1], Failed(failure=a_failure(), retry_in=0)),
        settlement(runs[2], Failed(failure=a_failure(), retry_in=SECOND)),
    ]

    async def settle(engine: Engine) -> object:
        return (await engine.jobs.settle(settlements, now=stage.now)).answers

    return Cut(settle, lambda _: [Answer.ALREADY] * 3)


async def jobs_release__from_behind_gates(stage: Stage) -> Cut:
    await configure(stage.engine, "q", LIMITED, now=stage.now)
    await stage.engine.jobs.enqueue([a_job(key=key) for key in "aabbcc"], now=stage.now)
    runs = await stage.claimant.take()
    assert len(runs) == 3
    releases = [
        Release(id=run.id, fence=run.fence, delay=delay)
        for run, delay in zip(runs, (None, 5, None), strict=True)
    ]
    return Cut(lambda engine: engine.jobs.release(releases, now=stage.now), lambda _: [Answer.ALREADY] * 3)


async def jobs_cancel__a_family(stage: Stage) -> Cut:
    parent = a_job()
    child = a_job(after=(parent.id,))
    await stage.engine.jobs.enqueue([parent, child, a_job(after=(child.id,)), a_job()], now=stage.now)
    return Cut(lambda engine: engine.jobs.cancel([parent.id, child.id], by="ann", now=stage.now))


async def jobs_drop__a_parent_with_a_past(stage: Stage) -> Cut:
    parents = some_jobs(2)
    children = [a_job(after=(parent.id,), parent_died="wait") for parent in parents]
    await stage.engine.jobs.enqueue([*parents, *children, a_job(after=(children[0].id,))], now=stage.now)
    runs = await stage.claimant.take()
    await stage.claimant.write(runs[0], LogLine(number=1, level="info", message="x"))
    await stage.claimant.fail(*runs)
    ids = ids_of(runs)
    return Cut(
        lambda engine: engine.jobs.drop(ids, by="ann", now=stage.now), lambda _: [DropAnswer.UNKNOWN] * 2
    )


async def jobs_retire__with_a_last_crash(stage: Stage) -> Cut:
    jobs = some_jobs(4)
    await stage.engine.jobs.enqueue([*jobs, a_job(after=(jobs[0].id,))], now=stage.now)
    for _ in range(2):
        victim = await a_claimant(stage.engine, stage.clock, name="victim")
        (run,) = await victim.take(ids=(jobs[0].id,), suspects=1)
        await stage.engine.jobs.retire(
            victim.id, [LostRun(id=run.id, fence=run.fence, verdict="crash")], now=stage.now
        )
    runs = await stage.claimant.take(suspects=1)
    by_id = {run.id: run for run in runs}
    assert set(by_id) == set(ids_of(jobs))
    verdicts: tuple[LostRunVerdict, ...] = ("crash", "suspect", "crash")
    lost_runs = [
        LostRun(id=job.id, fence=by_id[job.id].fence, verdict=verdict)
        for job, verdict in zip(jobs, verdicts, strict=False)
    ]
    return Cut(lambda engine: engine.jobs.retire(stage.claimant.id, lost_runs, now=stage.now), lambda _: 0)


async def jobs_reclaim__from_several(stage: Stage) -> Cut:
    await configure(stage.engine, "q", LIMITED, now=stage.now)
    await stage.engine.jobs.enqueue([a_job(key=key) for key in "abcdef"], now=stage.now)
    other = await a_claimant(stage.engine, stage.clock, name="other")
    assert len([*await stage.claimant.take(most=2), *await other.take(most=2)]) == 4
    sweeper = await a_claimant(stage.engine, stage.clock, name="sweeper")
    for _ in range(6):
        stage.clock.forward(2)
        await sweeper.heartbeat()

    return Cut(
        lambda engine: engine.jobs.reclaim(sweeper.member.id, now=stage.now),
        lambda _: Reclaimed(entitled=True, jobs=0, gone=[]),
    )


async def jobs_prune__everything(stage: Stage) -> Cut:
    options = QueueOptions(keep_completed=Keep(age=3_600.0), keep_dead=Keep(count=1))
    await configure(stage.engine, "q", options, now=stage.now)
    await configure(stage.engine, "gone", QueueOptions(keep_completed=Keep(count=0)), now=stage.now)
    parent = a_job()
    await stage.engine.jobs.enqueue([parent, *some_jobs(5), a_job(queue="gone")], now=stage.now)
    await stage.engine.jobs.enqueue([a_job(after=(parent.id,), parent_died="wait")], now=stage.now)
    runs = await stage.claimant.take("q", "gone")
    failing = [run for run in runs if run.queue == "q"][:3]
    await stage.claimant.fail(*failing)
    await stage.claimant.complete(*(run for run in runs if run not in failing))
    await stage.engine.jobs.retire(stage.claimant.id, now=stage.now)
    stage.clock.now += 40 * DAY
    return Cut(lambda engine: engine.jobs.prune(now=stage.now), lambda _: Pruned(jobs=0, more=False))


async def members_heartbeat__that_releases(stage: Stage) -> Cut:
    """One run is held and asked to stop, one was asked and is given back, so are two others."""
    await configure(stage.engine, "q", LIMITED, now=stage.now)
    await stage.engine.jobs.enqueue([a_job(key=key) for key in "abcd"], now=stage.now)
    runs = await stage.claimant.take()
    assert len(runs) == 4
    await stage.engine.jobs.cancel([runs[0].id, runs[1].id], now=stage.now)
    stage.clock.forward(1)
    heartbeat = ClaimantHeartbeat(claimant=stage.claimant.id, answered_through=1, held=(runs[0].fence, 2**52))
    return Cut(
        lambda engine: engine.members.heartbeat(stage.claimant.member, [heartbeat], now=stage.now),
        lambda first: msgspec.structs.replace(first, number=first.number + 1),
    )


async def queues_declare__a_new_shape(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job(key=key, task=f"t{key}") for key in "aabbcc"], now=stage.now)
    await stage.claimant.take(most=2)
    options = QueueOptions(fair_by="key", per_task={"tb": Limit(concurrency=1)}, concurrency=2)
    return Cut(lambda engine: configure(engine, "q", options, now=stage.now))


async def leases_acquire__after_another(stage: Stage) -> Cut:
    await stage.engine.leases.acquire("l", holder="other", ttl=SECOND, now=stage.now)
    stage.clock.forward(2)
    return Cut(lambda engine: engine.leases.acquire("l", holder="me", ttl=SECOND, now=stage.now))


OF_THE_CONTRACT = (
    "blocking_enqueue", "jobs_claim__of_who_does_not_know_all_tasks", "tasks_pause", "tasks_resume",
    "jobs_claim__by_id", "jobs_write", "jobs_replay", "jobs_run_now", "jobs_watch", "jobs_promote",
    "queues_pause", "queues_resume", "queues_override", "queues_reset", "queues_retire", "queues_sample",
    "tasks_publish",
    "schedules_put", "schedules_fire", "schedules_pause", "schedules_retire", "schedules_remove",
    "leases_renew", "leases_release", "members_leave",
)  # fmt: skip

OPERATIONS: dict[str, Scenario] = {name: SCENARIOS[name] for name in OF_THE_CONTRACT} | {
    operation.__name__: operation
    for operation in (
        jobs_enqueue__a_family,
        jobs_claim__that_tidies_up,
        jobs_settle__and_all_that_follows,
        jobs_settle__a_plain_batch,
        jobs_settle__failures,
        jobs_release__from_behind_gates,
        jobs_cancel__a_family,
        jobs_drop__a_parent_with_a_past,
        jobs_retire__with_a_last_crash,
        jobs_reclaim__from_several,
        jobs_prune__everything,
        members_heartbeat__that_releases,
        queues_declare__a_new_shape,
        leases_acquire__after_another,
    )
}

READING = (
    "inspect.get", "inspect.list", "inspect.counts", "inspect.series", "inspect.log", "inspect.checkpoints",
    "inspect.audit", "inspect.storage", "inspect.dead_groups", "inspect.stats", "inspect.why",
    "queues.list", "tasks.list", "schedules.list",
    "leases.list", "members.list", "signals.publish", "signals.subscribe", "subscription.next",
    "subscription.close", "transactions.enqueue", "transactions.complete", "transactions.fates", "engine.now",
    "engine.close",
)  # fmt: skip
"""Methods that write nothing."""
