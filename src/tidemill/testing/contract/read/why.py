"""`inspect.why`: what decides whether a job runs, from the same conditions as the claim."""

import pytest

from tidemill.engine.protocol import WHY_LIMIT, Engine
from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import PARENTS_LIMIT, JobState, NewJob
from tidemill.model.jobs.run import LostRun, Started
from tidemill.model.member import MemberInfo, marks_of_tasks
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
from tidemill.model.time import MINUTE, SECOND, Instant
from tidemill.model.view import TaskEntry
from tidemill.model.why.facts import AHEAD_COUNTED, HOLDERS_SHOWN, PARENTS_SHOWN, WhyFacts
from tidemill.model.why.reasons import STOPS, Reason, ReasonKind, reasons_of
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    ids_of,
    job_of,
    some_jobs,
)

READY = [ReasonKind.READY]


async def facts_of(engine: Engine, clock: Clock, job_id: JobId) -> WhyFacts:
    """What is known of a job that must be there."""
    (facts,) = await engine.inspect.why([job_id], now=clock.now)
    assert facts is not None
    assert facts.now == clock.now
    return facts


async def why(engine: Engine, clock: Clock, job_id: JobId) -> list[Reason]:
    """The reasons of one job."""
    return reasons_of(await facts_of(engine, clock, job_id))


async def kinds(engine: Engine, clock: Clock, job_id: JobId) -> list[ReasonKind]:
    return [reason.kind for reason in await why(engine, clock, job_id)]


async def only(engine: Engine, clock: Clock, job_id: JobId, kind: ReasonKind) -> Reason:
    """The one reason of this kind; nothing else holds the job back."""
    found = await why(engine, clock, job_id)
    assert [reason.kind for reason in found] == [kind]
    return found[0]


@pytest.fixture
async def worker(engine: Engine, clock: Clock) -> Claimant:
    """A claimant of a member that takes the queue "q"."""
    member = MemberInfo(id=new_id(), name="host:1", queues=("q",))
    return await a_claimant(engine, clock, member=member)


async def store(engine: Engine, clock: Clock, *jobs: NewJob) -> list[JobId]:
    await engine.jobs.enqueue(jobs, now=clock.now)
    return ids_of(jobs)


@pytest.mark.row("F6")
async def test_a_job_that_nothing_holds_back_can_start_now(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    (job,) = await store(engine, clock, a_job())
    await only(engine, clock, job, ReasonKind.READY)
    facts = await facts_of(engine, clock, job)
    assert (facts.pause, facts.gates, facts.ahead, facts.better, facts.parents) == (None, (), 0, 0, ())
    assert facts.workers.take_queue == 1
    assert (facts.job.id, facts.job.body, facts.job.failures) == (job, None, ())
    assert ids_of(await worker.take()) == [job]


@pytest.mark.row("F6")
async def test_a_pause_is_a_reason_with_its_author(engine: Engine, clock: Clock, worker: Claimant) -> None:
    (job,) = await store(engine, clock, a_job())
    paused = clock.now
    await engine.queues.pause("q", by="ada", why="a deploy", now=paused)
    clock.forward(7)
    reason = await only(engine, clock, job, ReasonKind.PAUSED)
    assert (reason.by, reason.why, reason.since, reason.until) == ("ada", "a deploy", paused, None)
    assert await worker.take() == []
    await engine.queues.resume("q", now=clock.now)
    assert await kinds(engine, clock, job) == READY


@pytest.mark.row("F6")
async def test_a_pause_of_its_task_is_a_reason(engine: Engine, clock: Clock, worker: Claimant) -> None:
    await engine.tasks.publish([TaskEntry(name="t", queue="q")], now=clock.now)
    jobs = await store(engine, clock, a_job("t"), a_job("u"))
    await engine.tasks.pause("t", by="ada", why="a bug", now=clock.now)
    reason = await only(engine, clock, jobs[0], ReasonKind.PAUSED)
    assert (reason.by, reason.why, reason.opens[0].what) == ("ada", "a bug", "task")
    assert ids_of(await worker.take()) == [jobs[1]]
    await engine.tasks.resume("t", now=clock.now)
    assert ReasonKind.READY in await kinds(engine, clock, jobs[0])


@pytest.mark.row("F6")
async def test_a_job_that_is_not_due_says_when(engine: Engine, clock: Clock, worker: Claimant) -> None:
    (job,) = await store(engine, clock, a_job(delay=12 * SECOND))
    reason = await only(engine, clock, job, ReasonKind.NOT_DUE)
    assert reason.until == clock.now + 12 * SECOND
    assert "12 s" in reason.sentence


@pytest.mark.row("F6")
async def test_a_job_whose_time_has_come_can_start_before_any_claim_has_seen_it(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    (job,) = await store(engine, clock, a_job(delay=SECOND))
    clock.forward(1)
    assert (await job_of(engine, job)).state is JobState.SCHEDULED
    assert await kinds(engine, clock, job) == READY
    assert ids_of(await worker.take()) == [job]


@pytest.mark.row("F6")
async def test_a_retry_says_what_failed(engine: Engine, clock: Clock, worker: Claimant) -> None:
    (job,) = await store(engine, clock, a_job())
    await worker.fail(await worker.take_one(), retry_in=30 * SECOND)
    reason = await only(engine, clock, job, ReasonKind.NOT_DUE)
    assert reason.until == clock.now + 30 * SECOND
    assert "no route" in reason.sentence


@pytest.mark.row("F6")
async def test_a_job_names_those_that_it_waits_for(engine: Engine, clock: Clock, worker: Claimant) -> None:
    parents = some_jobs(12)
    (*_, job) = await store(engine, clock, *parents, a_job(after=tuple(ids_of(parents))))
    reason = await only(engine, clock, job, ReasonKind.PARENTS)
    assert reason.count == 12
    facts = await facts_of(engine, clock, job)
    shown = [parent.id for parent in facts.parents]
    assert shown == sorted(ids_of(parents))[:PARENTS_SHOWN]
    await worker.complete(await worker.take_one())
    assert (await only(engine, clock, job, ReasonKind.PARENTS)).count == 11


@pytest.mark.row("F6")
async def test_a_job_with_many_parents_names_some(engine: Engine, clock: Clock, worker: Claimant) -> None:
    parents = some_jobs(PARENTS_LIMIT)
    await store(engine, clock, *parents)
    (job,) = await store(engine, clock, a_job(after=tuple(ids_of(parents))))
    assert (await only(engine, clock, job, ReasonKind.PARENTS)).count == PARENTS_LIMIT
    shown = [parent.id for parent in (await facts_of(engine, clock, job)).parents]
    assert len(shown) == PARENTS_SHOWN
    assert shown == sorted(set(shown) & set(ids_of(parents)))


@pytest.mark.row("F6")
async def test_a_parent_that_has_to_be_replayed_comes_first(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    parents = some_jobs(3)
    after = tuple(ids_of(parents))
    (*_, job) = await store(engine, clock, *parents, a_job(after=after, parent_died="wait"))
    runs = await worker.take()
    await worker.fail(runs[2])
    facts = await facts_of(engine, clock, job)
    first = facts.parents[0]
    assert (first.id, first.state, len(facts.parents)) == (runs[2].id, JobState.DEAD, 3)
    assert "replayed" in (await only(engine, clock, job, ReasonKind.PARENTS)).sentence


@pytest.mark.row("F6")
@pytest.mark.parametrize(
    ("options", "gate"),
    [
        (QueueOptions(concurrency=2), "queue"),
        (QueueOptions(per_task={"t": Limit(concurrency=2)}), "task t"),
        (QueueOptions(per_key=Limit(concurrency=2)), "key acme"),
        (QueueOptions(per_key=Limit(concurrency=9), limits={"acme": Limit(concurrency=2)}), "key acme"),
    ],
    ids=["queue", "task", "key", "named key"],
)
async def test_a_full_gate_names_its_holders(
    engine: Engine, clock: Clock, worker: Claimant, options: QueueOptions, gate: str
) -> None:
    await configure(engine, "q", options, now=clock.now)
    jobs = await store(engine, clock, *some_jobs(3, key="acme"))
    since = []
    for _ in range(2):
        clock.forward(1)
        since.append(clock.now)
        await worker.take(most=1)
    clock.forward(1)
    reason = await only(engine, clock, jobs[2], ReasonKind.GATE_FULL)
    assert (reason.gate, reason.limit, reason.count) == (gate, 2, 2)
    assert [(each.id, each.member, each.since) for each in reason.holders] == [
        (job, "host:1", at) for job, at in zip(jobs[:2], since, strict=True)
    ]
    assert await worker.take(ids=(jobs[2],)) == []


@pytest.mark.row("F6")
async def test_a_gate_shows_a_bounded_number_of_holders(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=25, per_key=Limit(concurrency=20)), now=clock.now)
    *_, job = await store(engine, clock, *some_jobs(21, key="a"))
    assert len(await worker.take()) == 20
    queue, key = (await facts_of(engine, clock, job)).gates
    assert (queue.gate.kind, queue.held, len(queue.holders)) == ("queue", 20, HOLDERS_SHOWN)
    assert (key.gate.kind, key.held, len(key.holders)) == ("key", 20, HOLDERS_SHOWN)


@pytest.mark.row("F6")
async def test_a_limit_that_was_lowered_shows_that_more_run(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
    *_, job = await store(engine, clock, *some_jobs(6))
    assert len(await worker.take()) == 5
    clock.forward(1)
    await configure(engine, "q", QueueOptions(concurrency=2), now=clock.now)
    reason = await only(engine, clock, job, ReasonKind.GATE_FULL)
    assert (reason.limit, reason.count) == (2, 5)


@pytest.mark.row("F6")
@pytest.mark.parametrize(
    ("options", "gate"),
    [
        (QueueOptions(rate=Rate(2, per=60)), "queue"),
        (QueueOptions(per_task={"t": Limit(rate=Rate(2, per=60))}), "task t"),
        (QueueOptions(per_key=Limit(rate=Rate(2, per=60))), "key acme"),
    ],
    ids=["queue", "task", "key"],
)
async def test_a_rate_that_is_used_up_says_when_it_opens(
    engine: Engine, clock: Clock, worker: Claimant, options: QueueOptions, gate: str
) -> None:
    await configure(engine, "q", options, now=clock.now)
    *_, job = await store(engine, clock, *some_jobs(3, key="acme"))
    claim = await worker.claim()
    assert len(claim.jobs) == 2
    await worker.complete(*claim.jobs)
    clock.forward(10)
    reason = await only(engine, clock, job, ReasonKind.RATE)
    assert (reason.gate, reason.limit) == (gate, 2)
    assert reason.until is not None
    clock.now = reason.until - 1
    await worker.heartbeat()
    assert await kinds(engine, clock, job) == [ReasonKind.RATE]
    assert await worker.take(ids=(job,)) == []
    clock.now = reason.until
    assert await kinds(engine, clock, job) == READY
    assert ids_of(await worker.take(ids=(job,))) == [job]


@pytest.mark.row("F6")
async def test_the_opening_of_a_rate_moves_with_its_window(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(1, per=60)), now=clock.now)
    *_, job = await store(engine, clock, *some_jobs(2))
    assert len(await worker.take()) == 1
    clock.forward(10)
    await configure(engine, "q", QueueOptions(rate=Rate(1, per=20)), now=clock.now)
    reason = await only(engine, clock, job, ReasonKind.RATE)
    assert reason.until is not None
    for moment, taken in ((reason.until - 1, []), (reason.until, [job])):
        clock.now = moment
        assert ids_of(await worker.take(ids=(job,))) == taken


@pytest.mark.row("F6")
async def test_a_job_counts_those_before_it_in_its_lane(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    jobs = await store(engine, clock, *some_jobs(5), *some_jobs(3, priority=7), a_job(queue="r"))
    assert (await only(engine, clock, jobs[4], ReasonKind.BEHIND)).count == 4
    later = await why(engine, clock, jobs[7])
    assert [(reason.kind, reason.count) for reason in later] == [
        (ReasonKind.PRIORITY, 5),
        (ReasonKind.BEHIND, 2),
    ]
    taken = await worker.take(most=3)
    assert (await only(engine, clock, jobs[4], ReasonKind.BEHIND)).count == 1
    await worker.release(taken[0])
    assert (await only(engine, clock, jobs[4], ReasonKind.BEHIND)).count == 2
    assert (await facts_of(engine, clock, jobs[7])).better == 3


@pytest.mark.row("F6")
async def test_lanes_of_keys_are_counted_each_for_itself(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    jobs = [a_job(key=key) for key in "aababb"]
    await store(engine, clock, *jobs)
    ahead = [(await facts_of(engine, clock, job.id)).ahead for job in jobs]
    assert ahead == [0, 1, 0, 2, 1, 2]


@pytest.mark.row("F6")
async def test_jobs_before_it_are_counted_up_to_a_bound(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    for _ in range(2):
        await engine.jobs.enqueue(some_jobs(AHEAD_COUNTED // 2 + 1, priority=1), now=clock.now)
    later = [a_job(priority=1), a_job(priority=9)]
    await store(engine, clock, *later)
    behind = await only(engine, clock, later[0].id, ReasonKind.BEHIND)
    assert (behind.count, behind.more) == (AHEAD_COUNTED, True)
    assert "1,000" in behind.sentence
    better = await only(engine, clock, later[1].id, ReasonKind.PRIORITY)
    assert (better.count, better.more) == (AHEAD_COUNTED, True)


@pytest.mark.row("F6")
async def test_a_suspect_holds_back_suspects_only(engine: Engine, clock: Clock, worker: Claimant) -> None:
    jobs = await store(engine, clock, *some_jobs(3))
    taken = await worker.take(most=2)
    lost = [LostRun(id=job.id, fence=job.fence, verdict="suspect") for job in taken]
    await engine.jobs.retire(worker.id, lost, now=clock.now)
    assert await kinds(engine, clock, jobs[0]) == [ReasonKind.READY, ReasonKind.SUSPECT]
    assert await kinds(engine, clock, jobs[1]) == [ReasonKind.BEHIND, ReasonKind.SUSPECT]
    assert await kinds(engine, clock, jobs[2]) == READY
    other = await a_claimant(engine, clock, member=worker.member)
    assert await other.take(ids=(jobs[0],)) == []
    assert ids_of(await other.take(ids=(jobs[0],), suspects=1)) == [jobs[0]]


@pytest.mark.row("F6")
async def test_a_queue_that_no_live_worker_takes_is_a_reason(engine: Engine, clock: Clock) -> None:
    (job,) = await store(engine, clock, a_job())
    await only(engine, clock, job, ReasonKind.NO_WORKER)
    elsewhere = MemberInfo(id=new_id(), name="host:1", queues=("r",))
    await engine.members.heartbeat(elsewhere, (), now=clock.now)
    await only(engine, clock, job, ReasonKind.NO_WORKER)
    member = MemberInfo(id=new_id(), name="host:2", queues=("q", "r"))
    await engine.members.heartbeat(member, (), now=clock.now)
    assert await kinds(engine, clock, job) == READY
    clock.now += member.lease + 1
    await only(engine, clock, job, ReasonKind.NO_WORKER)


@pytest.mark.row("F6")
async def test_a_task_that_no_live_worker_knows_is_a_reason(engine: Engine, clock: Clock) -> None:
    (job,) = await store(engine, clock, a_job("shop.send"))
    tasks = marks_of_tasks(["shop.pay"])
    old = MemberInfo(id=new_id(), name="host:1", queues=("q",), tasks=tasks)
    await engine.members.heartbeat(old, (), now=clock.now)
    await only(engine, clock, job, ReasonKind.UNKNOWN_TASK)
    silent = MemberInfo(id=new_id(), name="host:2", queues=("q",))
    await engine.members.heartbeat(silent, (), now=clock.now)
    assert await kinds(engine, clock, job) == READY
    await engine.members.leave(silent.id, now=clock.now)
    new = MemberInfo(id=new_id(), name="host:3", queues=("q",), tasks=marks_of_tasks(["shop.send"]))
    await engine.members.heartbeat(new, (), now=clock.now)
    assert await kinds(engine, clock, job) == READY


@pytest.mark.row("F6")
async def test_a_released_run_says_why(engine: Engine, clock: Clock, worker: Claimant) -> None:
    (job,) = await store(engine, clock, a_job())
    await worker.release(await worker.take_one(), reason="drain")
    reason = (await why(engine, clock, job))[-1]
    assert (reason.kind, reason.why, reason.by) == (ReasonKind.RELEASED, "drain", "host:1")
    await worker.release(await worker.take_one(), reason="snooze", delay=MINUTE)
    assert await kinds(engine, clock, job) == [ReasonKind.NOT_DUE, ReasonKind.RELEASED]


@pytest.mark.row("F6")
async def test_a_job_that_has_expired_says_so_until_it_is_dead(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    ready, scheduled = await store(engine, clock, a_job(expires=SECOND), a_job(delay=MINUTE, expires=SECOND))
    clock.forward(1)
    assert ReasonKind.EXPIRED in await kinds(engine, clock, ready)
    assert await kinds(engine, clock, scheduled) == [ReasonKind.NOT_DUE, ReasonKind.EXPIRED]
    await engine.jobs.promote(now=clock.now)
    reason = await only(engine, clock, ready, ReasonKind.ENDED)
    assert "expired" in reason.why


@pytest.mark.row("F6")
async def test_a_job_that_runs_says_where_and_since_when(
    engine: Engine, clock: Clock, worker: Claimant
) -> None:
    (job,) = await store(engine, clock, a_job())
    claimed: Instant = clock.now
    run = await worker.take_one()
    clock.forward(3)
    taken = await only(engine, clock, job, ReasonKind.RUNNING)
    assert (taken.since, taken.by) == (claimed, "host:1")
    started = clock.now
    await worker.write(run, Started())
    clock.forward(3)
    assert (await only(engine, clock, job, ReasonKind.RUNNING)).since == started
    await engine.jobs.cancel([job], now=clock.now)
    assert await kinds(engine, clock, job) == [ReasonKind.RUNNING, ReasonKind.STOPPING]


@pytest.mark.row("F6")
async def test_a_job_that_has_ended_says_how(engine: Engine, clock: Clock, worker: Claimant) -> None:
    jobs = some_jobs(3)
    await store(engine, clock, *jobs)
    first, second, third = await worker.take()
    await worker.complete(first)
    await worker.fail(second)
    await worker.stop(third)
    clock.forward(60)
    found = [await only(engine, clock, job.id, ReasonKind.ENDED) for job in jobs]
    assert [reason.since for reason in found] == [clock.now - MINUTE] * 3
    assert "completed" in found[0].sentence
    assert "died" in found[1].sentence
    assert "no route" in found[1].why
    assert "cancelled" in found[2].sentence


@pytest.mark.row("F6")
async def test_several_reasons_are_answered_together(engine: Engine, clock: Clock, worker: Claimant) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1, rate=Rate(1, per=60)), now=clock.now)
    *_, job = await store(engine, clock, *some_jobs(3))
    assert len(await worker.take()) == 1
    await engine.queues.pause("q", now=clock.now)
    assert await kinds(engine, clock, job) == [
        ReasonKind.PAUSED,
        ReasonKind.GATE_FULL,
        ReasonKind.RATE,
        ReasonKind.BEHIND,
    ]


async def test_a_limit_of_each_process_is_named(engine: Engine, clock: Clock, worker: Claimant) -> None:
    """No engine counts it, so it stops nothing here; it must not be said that nothing holds the job back."""
    per_worker = Limit(rate=Rate(1, per=60))
    await configure(engine, "q", QueueOptions(per_worker=per_worker), now=clock.now)
    (job,) = await store(engine, clock, *some_jobs(1))
    (facts,) = await engine.inspect.why([job], now=clock.now)
    assert facts is not None
    assert facts.per_worker == per_worker
    assert ids_of(await worker.take()) == [job]


async def test_jobs_that_are_not_there_have_no_facts(engine: Engine, clock: Clock, worker: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    jobs = await store(engine, clock, *some_jobs(2))
    await worker.complete(await worker.take_one())
    found = await engine.inspect.why([new_id(), jobs[0], jobs[1], jobs[1]], now=clock.now)
    assert [facts and facts.job.id for facts in found] == [None, None, jobs[1], jobs[1]]


async def test_nothing_holds_back_what_has_started(engine: Engine, clock: Clock, worker: Claimant) -> None:
    """Also beside a job of the same queue that waits."""
    await configure(engine, "q", QueueOptions(concurrency=2), now=clock.now)
    jobs = await store(engine, clock, *some_jobs(3))
    first, _ = await worker.take()
    await worker.complete(first)
    await engine.queues.pause("q", now=clock.now)
    ended, running, waiting = await engine.inspect.why(jobs, now=clock.now)
    for facts in (ended, running):
        assert facts is not None
        assert facts == WhyFacts(now=clock.now, job=facts.job)
    assert waiting is not None
    assert waiting.pause is not None


async def test_one_call_asks_for_a_bounded_number_of_jobs(engine: Engine, clock: Clock) -> None:
    assert await engine.inspect.why([], now=clock.now) == []
    await engine.inspect.why([new_id()] * WHY_LIMIT, now=clock.now)
    with pytest.raises(BadInput):
        await engine.inspect.why([new_id()] * (WHY_LIMIT + 1), now=clock.now)
    with pytest.raises(BadInput):
        await engine.inspect.why([b"short"], now=clock.now)


ARRANGED: dict[str, QueueOptions] = {
    "plain": QueueOptions(),
    "queue": QueueOptions(concurrency=4),
    "rate": QueueOptions(rate=Rate(4, per=60)),
    "task": QueueOptions(per_task={"t": Limit(concurrency=2), "u": Limit(rate=Rate(2, per=60))}),
    "key": QueueOptions(concurrency=6, per_key=Limit(concurrency=2)),
    "all": QueueOptions(
        concurrency=5,
        per_task={"t": Limit(concurrency=3)},
        per_key=Limit(concurrency=2, rate=Rate(3, per=60)),
    ),
}


@pytest.mark.row("F6")
@pytest.mark.parametrize("options", ARRANGED.values(), ids=ARRANGED)
async def test_a_claim_takes_what_nothing_stops_and_nothing_else(
    engine: Engine, clock: Clock, worker: Claimant, options: QueueOptions
) -> None:
    """One job after the other: what its reasons say, and what a claim of it does."""
    await configure(engine, "q", options, now=clock.now)
    jobs = [
        a_job(task, key=key, delay=delay * SECOND)
        for task in ("t", "u")
        for key in ("a", "b", None)
        for delay in (0, 5, 50)
    ]
    await store(engine, clock, *jobs, a_job(after=(jobs[0].id,)))
    clock.forward(5)
    taken = 0
    for job in jobs:
        stops = {reason.kind for reason in await why(engine, clock, job.id)} & STOPS
        claimed = ids_of(await worker.take(ids=(job.id,), suspects=1))
        assert claimed == ([] if stops else [job.id]), f"{stops} and {claimed}"
        taken += len(claimed)
    assert taken, "some of them must start"
    assert ids_of(await worker.take()) == []
