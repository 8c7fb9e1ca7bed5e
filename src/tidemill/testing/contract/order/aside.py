"""Jobs that stand aside: their claimant does not know their task, or an operator has paused it."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidemill.engine.protocol import ASIDE_LIMIT, UNKNOWN_LIMIT, Engine
from tidemill.model.errors import BadInput, UnknownTask
from tidemill.model.event import ready_topic
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobState, NewJob
from tidemill.model.jobs.run import ClaimedJob, LostRun, Want
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter, TaskEntry
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    ids_of,
    job_of,
    listed,
    some_jobs,
    states_of,
)

OLD, NEW = "old", "new"
"""A task that every worker knows, and one that came with a deploy."""
PATIENCE_S = 5.0


def alternating(count: int, **options: Any) -> list[NewJob]:
    """Jobs of both tasks in turn, an old one first."""
    return [a_job((OLD, NEW)[number % 2], **options) for number in range(count)]


def of(task: str, jobs: Sequence[NewJob]) -> list[JobId]:
    return [job.id for job in jobs if job.task == task]


async def reasons_of(engine: Engine, ids: Sequence[JobId]) -> list[str | None]:
    return [(await job_of(engine, job_id)).reason for job_id in ids]


async def run_all(claimant: Claimant, *queues: str, most: int = 100, **options: Any) -> list[ClaimedJob]:
    """Claim and complete until nothing comes and nothing more comes at once."""
    ran: list[ClaimedJob] = []
    for _ in range(10_000):
        claim = await claimant.claim(*queues, most=most, **options)
        ran += claim.jobs
        await claimant.complete(*claim.jobs)
        if not claim.jobs and claim.wait != 0:
            return ran
    raise AssertionError("the claims make no progress")


async def test_no_job_of_a_named_task_is_taken(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(6)
    await engine.jobs.enqueue(jobs, now=clock.now)
    claim = await claimant.claim(unknown=(NEW,))
    assert ids_of(claim.jobs) == of(OLD, jobs)
    assert claim.wait is None
    assert await states_of(engine, jobs[1::2]) == [JobState.READY] * 3


async def test_they_show_why_until_they_are_taken(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take(unknown=(NEW,))
    assert await reasons_of(engine, of(NEW, jobs)) == ["unknown task"] * 2
    knowing = await a_claimant(engine, clock, name="knowing")
    first, other = await knowing.take()
    assert await reasons_of(engine, of(NEW, jobs)) == [None] * 2
    await knowing.complete(first)
    await knowing.release(other)
    assert await reasons_of(engine, of(NEW, jobs)) == [None] * 2


async def test_who_knows_the_task_takes_them_in_their_old_order(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = alternating(10)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert ids_of(await claimant.take(most=1, unknown=(NEW,))) == [jobs[0].id]
    assert ids_of(await claimant.take(most=1, unknown=(NEW,))) == [jobs[2].id]
    knowing = await a_claimant(engine, clock, name="knowing")
    rest = [job.id for number, job in enumerate(jobs) if number not in (0, 2)]
    assert ids_of(await knowing.take(most=3)) == rest[:3]
    assert ids_of(await knowing.take()) == rest[3:]
    assert await knowing.take() == []


async def test_new_jobs_stand_behind_those_that_stood_aside(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(3, task=NEW)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(unknown=(NEW,)) == []
    later = alternating(4)
    await engine.jobs.enqueue(later, now=clock.now)
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take()) == ids_of([*jobs, *later])


async def test_a_release_sets_aside_too(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    runs = await claimant.take()
    await claimant.release(*[run for run in runs if run.task == NEW], reason="unknown task")
    assert await claimant.take(unknown=(NEW,)) == []
    assert await reasons_of(engine, of(NEW, jobs)) == ["unknown task"] * 2
    knowing = await a_claimant(engine, clock, name="knowing")
    later = a_job(OLD)
    await engine.jobs.enqueue([later], now=clock.now)
    assert ids_of(await knowing.take()) == [*of(NEW, jobs), later.id]


async def test_a_released_job_may_wait_for_a_time_first(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(NEW)], now=clock.now)
    run = await claimant.take_one()
    await claimant.release(run, delay=SECOND, reason="unknown task")
    assert await states_of(engine, [run]) == [JobState.SCHEDULED]
    clock.forward(1)
    assert await claimant.take(unknown=(NEW,)) == []
    assert ids_of(await claimant.take()) == [run.id]


async def test_a_claim_names_few_tasks(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    names = tuple(f"t{number}" for number in range(UNKNOWN_LIMIT + 1))
    await engine.jobs.enqueue([a_job(names[0]), a_job(names[-1])], now=clock.now)
    with pytest.raises(BadInput, match="at most 100"):
        await engine.jobs.claim(claimant.request(unknown=names), now=clock.now)
    with pytest.raises(BadInput, match="once"):
        await engine.jobs.claim(claimant.request(unknown=("a", "a")), now=clock.now)
    with pytest.raises(BadInput):
        await engine.jobs.claim(claimant.request(unknown=("",)), now=clock.now)
    assert [job.task for job in await claimant.take(unknown=names[:-1])] == [names[-1]]


async def test_a_queue_full_of_them_makes_progress(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for count in (1_000, 1_000, 500):
        await engine.jobs.enqueue(some_jobs(count, task=NEW), now=clock.now)
    last = a_job(OLD)
    await engine.jobs.enqueue([last], now=clock.now)
    claims = [await claimant.claim(unknown=(NEW,)) for _ in range(3)]
    assert [claim.wait for claim in claims] == [0, 0, None]
    assert [ids_of(claim.jobs) for claim in claims] == [[], [], [last.id]]
    assert (await claimant.claim(unknown=(NEW,))).wait is None
    aside = [job for job in await listed(engine, JobFilter(task=NEW)) if job.reason == "unknown task"]
    assert len(aside) == 2 * ASIDE_LIMIT + 500


async def test_they_use_no_permit_and_hold_back_no_other(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(concurrency=2, rate=Rate(3, per=10))
    await configure(engine, "q", options, now=clock.now)
    jobs = alternating(8)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await claimant.take(unknown=(NEW, OLD))) == 0
    runs = await claimant.take(unknown=(NEW,))
    assert ids_of(runs) == of(OLD, jobs)[:2]
    await claimant.complete(*runs)
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take()) == [jobs[1].id], "the third permit of the rate, and the first of all"


async def test_limits_hold_for_them(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(per_task={NEW: Limit(concurrency=1)}, per_key=Limit(concurrency=2))
    await configure(engine, "q", options, now=clock.now)
    jobs = [a_job(NEW, key="k"), a_job(OLD, key="k"), a_job(NEW, key="l"), a_job(OLD, key="k")]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(unknown=(NEW, OLD)) == []
    knowing = await a_claimant(engine, clock, name="knowing")
    runs = await knowing.take()
    assert len(runs) == 2, "one of the limited task, and of the key one more"
    assert sorted(run.task for run in runs) in ([NEW, OLD], [OLD, OLD])
    await knowing.complete(*runs)
    rest = await run_all(knowing)
    assert sorted([*ids_of(runs), *ids_of(rest)]) == sorted(ids_of(jobs))


async def test_lanes_take_turns_with_what_stands_aside_in_them(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    jobs = [a_job(task, key=key) for task in (NEW, OLD) for key in "aab"]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(unknown=(NEW, OLD)) == []
    knowing = await a_claimant(engine, clock, name="knowing")
    taken = await knowing.take()
    assert [run.key for run in taken] == ["a", "b", "a", "b", "a", "a"]
    for key in "ab":
        assert [run.id for run in taken if run.key == key] == [job.id for job in jobs if job.key == key]


async def test_priorities_stay_strict(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(NEW, priority=priority) for priority in (9, 5, 0)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(unknown=(NEW,)) == []
    await engine.jobs.enqueue([middle := a_job(OLD, priority=3)], now=clock.now)
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take()) == [jobs[2].id, middle.id, jobs[1].id, jobs[0].id]


def lost(run: ClaimedJob) -> LostRun:
    """One of several that ran in a process which died."""
    return LostRun(id=run.id, fence=run.fence, verdict="suspect")


async def test_a_suspect_may_stand_aside(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    doomed = await a_claimant(engine, clock, name="doomed")
    runs = await doomed.take(most=2)
    await engine.jobs.retire(doomed.id, [lost(run) for run in runs], now=clock.now)
    assert ids_of(await claimant.take(suspects=2, unknown=(NEW,))) == [jobs[0].id, jobs[2].id]
    assert await reasons_of(engine, of(NEW, jobs)) == ["unknown task"] * 2
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take(suspects=0)) == [jobs[3].id], "it is a suspect still"
    assert ids_of(await knowing.take(suspects=1)) == [jobs[1].id]


async def test_due_jobs_stand_aside_when_they_are_met(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(NEW, delay=SECOND), a_job(OLD, delay=2 * SECOND), a_job(NEW, delay=2 * SECOND)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert (await claimant.claim(unknown=(NEW,))).wait == SECOND
    clock.forward(2)
    assert ids_of(await claimant.take(unknown=(NEW,))) == [jobs[1].id]
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take()) == [jobs[0].id, jobs[2].id]


async def test_claims_by_id_pass_them_over_too(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    ids = tuple(ids_of(jobs))
    assert ids_of(await claimant.take(ids=ids, unknown=(NEW,))) == of(OLD, jobs)
    assert await reasons_of(engine, of(NEW, jobs)) == ["unknown task"] * 2
    assert await claimant.take(ids=ids, unknown=(NEW,)) == []
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take(ids=ids)) == of(NEW, jobs)


async def test_a_repeated_number_sets_nothing_aside(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    request = claimant.request(most=1, unknown=(NEW,))
    first = await engine.jobs.claim(request, now=clock.now)
    again = await engine.jobs.claim(request, now=clock.now)
    assert [(job.id, job.fence) for job in again.jobs] == [(job.id, job.fence) for job in first.jobs]
    assert again.wait == 0
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take()) == ids_of(jobs[1:])


async def test_a_claim_beside_outcomes_names_them_too(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = alternating(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    run = await claimant.take_one()
    settled = await claimant.settle(claim=claimant.request(unknown=(NEW,)))
    assert settled.claim is not None
    assert ids_of(settled.claim.jobs) == [jobs[2].id]
    assert await claimant.complete(run) == ["applied"]


async def test_what_stands_aside_expires(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(NEW, expires=SECOND), a_job(NEW)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take(unknown=(NEW,))
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, jobs) == [JobState.DEAD, JobState.READY]
    assert await reasons_of(engine, [jobs[0].id]) == [None]
    assert ids_of(await claimant.take()) == [jobs[1].id]


async def test_what_has_expired_is_met_as_such(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(NEW, expires=SECOND), a_job(OLD)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    clock.forward(1)
    assert ids_of(await claimant.take(unknown=(NEW,))) == [jobs[1].id]
    assert await states_of(engine, jobs[:1]) == [JobState.DEAD]


async def test_what_stands_aside_is_cancelled_replayed_and_dropped_as_any_other(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(3, task=NEW)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take(unknown=(NEW,))
    ids = ids_of(jobs)
    assert await engine.jobs.cancel(ids[:2], now=clock.now) == ["cancelled"] * 2
    assert await engine.jobs.replay(ids[:1], token=new_id(), now=clock.now) == ["replayed"]
    assert await engine.jobs.drop(ids[1:2], now=clock.now) == ["dropped"]
    assert await reasons_of(engine, [ids[0], ids[2]]) == [None, "unknown task"]
    assert ids_of(await claimant.take(unknown=(OLD,))) == [ids[2], ids[0]]


async def test_they_are_counted_and_listed_as_ready(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(task, priority=priority) for priority in (5, 2) for task in (OLD, NEW, "b-new")]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(most=1, unknown=(OLD, NEW, "b-new")) == []
    await engine.jobs.enqueue(more := some_jobs(2, task=NEW), now=clock.now)
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.ready, counts.running) == (8, 0)
    in_order = [jobs[number].id for number in (5, 4, 3)] + ids_of(more) + [jobs[n].id for n in (2, 1, 0)]
    only = JobFilter(state=JobState.READY, queue="q")
    assert ids_of(await listed(engine, only)) == in_order
    assert ids_of(await listed(engine, only, limit=1)) == in_order
    assert ids_of(await listed(engine, JobFilter(task=NEW), limit=2)) == [
        jobs[4].id,
        *ids_of(more),
        jobs[1].id,
    ]


async def test_a_queue_may_change_its_shape_under_them(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(task, key=key) for key in "ab" for task in (NEW, OLD, NEW)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take(unknown=(NEW, OLD)) == []
    await configure(
        engine, "q", QueueOptions(fair_by="key", per_task={NEW: Limit(concurrency=9)}), now=clock.now
    )
    knowing = await a_claimant(engine, clock, name="knowing")
    assert ids_of(await knowing.take(unknown=(NEW,))) == of(OLD, jobs)
    first = await knowing.take(most=2)
    assert [run.key for run in first] == ["a", "b"]
    await configure(engine, "q", QueueOptions(), now=clock.now)
    assert ids_of(await knowing.take(unknown=(NEW,))) == []
    taken = set(ids_of(first))
    assert ids_of(await knowing.take()) == [job_id for job_id in of(NEW, jobs) if job_id not in taken]


async def test_setting_aside_signals_the_queue(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    claimant = await a_claimant(one, clock)
    await one.jobs.enqueue(some_jobs(2, task=NEW), now=clock.now)
    run = await claimant.take_one()
    subscription = await other.signals.subscribe(ready_topic("q"))
    await claimant.take(unknown=(NEW,))
    assert await subscription.next(PATIENCE_S) is not None
    await claimant.take(unknown=(NEW,))
    await claimant.release(run, reason="unknown task")
    assert await subscription.next(PATIENCE_S) is not None


async def test_two_who_know_half_each_share_the_work(connect: Connect, clock: Clock) -> None:
    """Neither starves, and each task keeps its order in each lane."""
    one, other = await connect(), await connect()
    await configure(one, "q", QueueOptions(fair_by="key"), now=clock.now)
    tasks = ["a1", "a2", "b1", "b2"]
    jobs = [a_job(tasks[number % 4], key="kl"[number // 4 % 2]) for number in range(200)]
    await one.jobs.enqueue(jobs, now=clock.now)
    knows = {"a": await a_claimant(one, clock, name="a"), "b": await a_claimant(other, clock, name="b")}
    ran: dict[str, list[ClaimedJob]] = {"a": [], "b": []}
    while sum(map(len, ran.values())) < len(jobs):
        before = sum(map(len, ran.values()))
        for name, claimant in knows.items():
            unknown = tuple(task for task in tasks if task[0] != name)
            taken = await claimant.take(most=7, unknown=unknown)
            await claimant.complete(*taken)
            ran[name] += taken
        assert sum(map(len, ran.values())) > before
    for name, runs in ran.items():
        assert {run.task[0] for run in runs} == {name}
        for key in "kl":
            lane = [job.id for job in jobs if job.key == key and job.task[0] == name]
            assert [run.id for run in runs if run.key == key] == lane


async def test_a_paused_task_gives_nothing_to_anybody(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    await one.tasks.publish([TaskEntry(name=NEW, queue="q")], now=clock.now)
    jobs = alternating(6)
    await one.jobs.enqueue(jobs, now=clock.now)
    claimant = await a_claimant(other, clock)
    run_old, run_new = await claimant.take(most=2)
    await one.tasks.pause(NEW, by="ann", why="too hot", now=clock.now)
    await claimant.complete(run_old, run_new)
    assert ids_of(await claimant.take()) == of(OLD, jobs)[1:]
    await one.jobs.enqueue(later := alternating(2, key="k"), now=clock.now)
    assert ids_of(await claimant.take()) == [later[0].id]
    assert ids_of(await claimant.take(ids=tuple(ids_of(jobs)))) == []
    await one.tasks.resume(NEW, by="ann", now=clock.now)
    assert ids_of(await claimant.take()) == [*of(NEW, jobs)[1:], later[1].id]


async def test_a_pause_of_a_task_is_shown_and_a_repeat_keeps_the_first(engine: Engine, clock: Clock) -> None:
    entry = TaskEntry(name=NEW, queue="q")
    await engine.tasks.publish([TaskEntry(name="a", queue="q"), entry], now=clock.now)
    paused_at = clock.now
    await engine.tasks.pause(NEW, by="ann", why="too hot", now=paused_at)
    clock.forward(1)
    await engine.tasks.pause(NEW, by="bob", why="too cold", now=clock.now)
    (other, shown) = await engine.tasks.list()
    assert (shown.name, shown.paused_at, shown.paused_by, shown.paused_why) == (
        NEW,
        paused_at,
        "ann",
        "too hot",
    )
    assert other.paused_at is None
    await engine.tasks.publish([entry], now=clock.now)
    assert (await engine.tasks.list())[1] == shown, "to publish a task again does not end its pause"
    await engine.tasks.resume(NEW, by="ann", now=clock.now)
    await engine.tasks.resume(NEW, by="bob", now=clock.now)
    assert (await engine.tasks.list())[1] == entry
    await engine.tasks.publish([shown], now=clock.now)
    assert (await engine.tasks.list())[1] == entry, "a pause is not published"
    audit = [(each.by, each.action, each.target, each.detail) for each in await engine.inspect.audit()]
    assert audit == [("ann", "resume task", NEW, ""), ("ann", "pause task", NEW, "too hot")]


async def test_a_task_without_an_entry_is_not_paused(engine: Engine, clock: Clock) -> None:
    with pytest.raises(UnknownTask, match="nothing"):
        await engine.tasks.pause("nothing", by="ann", now=clock.now)
    with pytest.raises(UnknownTask, match="nothing"):
        await engine.tasks.resume("nothing", by="ann", now=clock.now)
    assert await engine.inspect.audit() == []


async def test_the_end_of_a_pause_signals_where_jobs_stand_aside(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    await one.tasks.publish([TaskEntry(name=NEW, queue="q")], now=clock.now)
    await one.jobs.enqueue([a_job(NEW, queue="r")], now=clock.now)
    await one.tasks.pause(NEW, now=clock.now)
    claimant = await a_claimant(one, clock)
    assert await claimant.take("q", "r") == []
    subscription = await other.signals.subscribe(ready_topic("r"))
    await one.tasks.resume(NEW, now=clock.now)
    assert await subscription.next(PATIENCE_S) is not None
    assert len(await claimant.take("q", "r")) == 1


async def test_a_pause_gives_no_reason(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """Who asks why it waits reads of the pause; after that the job would show what is over."""
    await engine.tasks.publish([TaskEntry(name=NEW, queue="q")], now=clock.now)
    jobs = some_jobs(2, task=NEW)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await engine.tasks.pause(NEW, now=clock.now)
    assert await claimant.take() == []
    assert await reasons_of(engine, ids_of(jobs)) == [None, None]


async def test_several_queues_and_bounds_hold_with_what_stands_aside(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(NEW, queue=queue) for queue in "aabb"]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await claimant.take("a", "b", unknown=(NEW,)) == []
    knowing = await a_claimant(engine, clock, name="knowing")
    request = knowing.request(most=10)
    wants = (Want("a", 1), Want("b", 2))
    claim = await engine.jobs.claim(
        type(request)(member=request.member, claimant=request.claimant, number=1, wants=wants, most=10),
        now=clock.now,
    )
    assert ids_of(claim.jobs) == [jobs[0].id, jobs[2].id, jobs[3].id]
