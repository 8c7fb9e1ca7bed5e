"""Jobs that wait for others: `after`, what a parent's death means, chains and wide fans."""

import pytest

from tidemill.engine.protocol import PROMOTE_LIMIT, Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState, NewJob, ParentDied
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    configure,
    created,
    ids_of,
    job_of,
    some_jobs,
    states_of,
)

BLOCKED, SCHEDULED, READY = JobState.BLOCKED, JobState.SCHEDULED, JobState.READY
COMPLETED, CANCELLED = JobState.COMPLETED, JobState.CANCELLED


def a_parent() -> NewJob:
    """A job in a queue of its own, so that a test says when it is taken."""
    return a_job(queue="parents")


async def end(claimant: Claimant, parent: NewJob, how: str) -> None:
    """End a parent that is ready."""
    run = await claimant.take_one(ids=(parent.id,))
    await (claimant.complete(run) if how == "completed" else claimant.fail(run))


@pytest.mark.row("C6")
async def test_a_child_waits_for_all_its_parents(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parents = [a_parent() for _ in range(3)]
    child = a_job(after=tuple(ids_of(parents)))
    await engine.jobs.enqueue([*parents, child], now=clock.now)
    waits = []
    for parent in parents:
        job = await job_of(engine, child.id)
        waits.append((job.state, job.waits_for))
        assert await claimant.take() == []
        await end(claimant, parent, "completed")
    assert waits == [(BLOCKED, 3), (BLOCKED, 2), (BLOCKED, 1)]
    job = await job_of(engine, child.id)
    assert (job.state, job.waits_for, job.ready_at) == (READY, 0, clock.now)
    assert ids_of(await claimant.take()) == [child.id]


async def test_what_its_enqueue_made_of_a_child_has_that_time(engine: Engine) -> None:
    """By the engine's own clock: so it is known of a record whether it was blocked before."""
    parent = a_parent()
    ready = a_job(after=(parent.id,), parent_died="run")
    cancelled = a_job(after=(parent.id,), parent_died="cancel")
    waiting = a_job(after=(ready.id,), parent_died="cancel")
    await engine.jobs.enqueue([parent])
    await engine.jobs.cancel([parent.id])
    await engine.jobs.enqueue([ready, cancelled, waiting])
    job = await job_of(engine, ready.id)
    assert (job.state, job.ready_at, job.ended_at) == (READY, job.created_at, None)
    job = await job_of(engine, cancelled.id)
    assert (job.state, job.ready_at, job.ended_at) == (CANCELLED, None, job.created_at)
    await engine.jobs.cancel([ready.id])
    job = await job_of(engine, waiting.id)
    assert (job.state, job.ready_at) == (CANCELLED, None)
    assert job.ended_at != job.created_at


async def test_a_parent_named_twice_counts_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id, parent.id))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await end(claimant, parent, "completed")
    assert await states_of(engine, [child]) == [READY]


async def test_a_child_stands_behind_those_ready_before(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_parent()
    child, other = a_job(after=(parent.id,)), a_job()
    await engine.jobs.enqueue([parent, child, other], now=clock.now)
    await end(claimant, parent, "completed")
    await engine.jobs.enqueue([last := a_job()], now=clock.now)
    assert ids_of(await claimant.take()) == ids_of([other, child, last])


async def test_a_child_still_waits_for_its_due_time(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    late, early = a_job(after=(parent.id,), delay=9 * SECOND), a_job(after=(parent.id,), delay=2 * SECOND)
    await engine.jobs.enqueue([parent, late, early], now=clock.now)
    due = clock.now + 9 * SECOND
    clock.forward(5)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, [late, early]) == [BLOCKED, BLOCKED]
    await end(claimant, parent, "completed")
    assert await states_of(engine, [late, early]) == [SCHEDULED, READY]
    assert (await job_of(engine, late.id)).due_at == due
    clock.now = due
    assert ids_of(await claimant.take()) == ids_of([early, late])


# A parent that ended before its child came

AT_ONCE: list[tuple[str, ParentDied, JobState]] = [
    ("completed", "cancel", READY),
    ("completed", "run", READY),
    ("completed", "wait", READY),
    ("dead", "cancel", CANCELLED),
    ("dead", "run", READY),
    ("dead", "wait", BLOCKED),
]


@pytest.mark.parametrize(("end_of_parent", "policy", "state"), AT_ONCE)
async def test_a_parent_that_has_ended_already(
    engine: Engine, clock: Clock, claimant: Claimant, end_of_parent: str, policy: ParentDied, state: JobState
) -> None:
    parent = a_parent()
    await engine.jobs.enqueue([parent], now=clock.now)
    await end(claimant, parent, end_of_parent)
    child = a_job(after=(parent.id,), parent_died=policy)
    grandchild = a_job(after=(child.id,))
    assert created(await engine.jobs.enqueue([child, grandchild], now=clock.now)) == [True, True]
    assert await states_of(engine, [child]) == [state]
    assert await states_of(engine, [grandchild]) == [CANCELLED if state is CANCELLED else BLOCKED]


@pytest.mark.parametrize(("end_of_parent", "policy", "state"), AT_ONCE)
async def test_a_parent_that_ends_later(
    engine: Engine, clock: Clock, claimant: Claimant, end_of_parent: str, policy: ParentDied, state: JobState
) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,), parent_died=policy)
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await end(claimant, parent, end_of_parent)
    assert await states_of(engine, [child]) == [state]


async def test_a_tombstone_is_a_parent_that_completed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "parents", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    parent = a_parent()
    child = a_job(after=(parent.id,))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await end(claimant, parent, "completed")
    late = a_job(after=(parent.id,))
    await engine.jobs.enqueue([late], now=clock.now)
    assert await states_of(engine, [child, late]) == [READY, READY]


# How a parent may die


async def test_a_cancelled_parent_died_too(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    children = [a_job(after=(parent.id,), parent_died=policy) for policy in ("cancel", "run", "wait")]
    await engine.jobs.enqueue([parent, *children], now=clock.now)
    await engine.jobs.cancel([parent.id], now=clock.now)
    assert await states_of(engine, children) == [CANCELLED, READY, BLOCKED]


async def test_an_expired_parent_died_too(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_job(queue="parents", expires=SECOND)
    children = [a_job(after=(parent.id,), parent_died=policy) for policy in ("cancel", "run", "wait")]
    await engine.jobs.enqueue([parent, *children], now=clock.now)
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, children) == [CANCELLED, READY, BLOCKED]


async def test_a_retry_is_no_death(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await claimant.fail(await claimant.take_one("parents"), retry_in=0)
    assert await states_of(engine, [child]) == [BLOCKED]
    await claimant.complete(await claimant.take_one("parents"))
    assert await states_of(engine, [child]) == [READY]


async def test_death_goes_down_a_chain_by_each_policy(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    root = a_parent()
    chain = [root]
    for policy in ("cancel", "cancel", "run", "cancel"):
        chain.append(a_job(after=(chain[-1].id,), parent_died=policy))
    await engine.jobs.enqueue(chain, now=clock.now)
    await end(claimant, root, "dead")
    assert await states_of(engine, chain[1:]) == [CANCELLED, CANCELLED, READY, BLOCKED]
    job = await job_of(engine, chain[1].id)
    assert (job.ended_at, job.attempts) == (clock.now, 0)
    assert job.error is not None
    assert job.error.kind == "parent"
    (parents, counts) = sorted(await engine.inspect.counts(now=clock.now), key=lambda c: c.queue != "parents")
    assert (parents.window.died, counts.window.cancelled) == (1, 2)


async def test_a_long_chain_runs_to_its_end(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    chain = [a_job()]
    for _ in range(20):
        chain.append(a_job(after=(chain[-1].id,)))
    await engine.jobs.enqueue(chain, now=clock.now)
    ran = []
    for _ in chain:
        run = await claimant.take_one()
        ran.append(run.id)
        await claimant.complete(run)
    assert ran == ids_of(chain)


async def test_one_dead_parent_of_several_is_enough(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    first, second = a_parent(), a_parent()
    child = a_job(after=(first.id, second.id))
    await engine.jobs.enqueue([first, second, child], now=clock.now)
    await end(claimant, first, "dead")
    assert await states_of(engine, [child]) == [CANCELLED]
    await end(claimant, second, "completed")
    assert await states_of(engine, [child]) == [CANCELLED]
    assert await claimant.take() == []


async def test_a_cancelled_child_stays_cancelled(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await engine.jobs.cancel([child.id], now=clock.now)
    await end(claimant, parent, "completed")
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, [child]) == [CANCELLED]


async def test_a_blocked_child_may_expire(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,), expires=SECOND)
    await engine.jobs.enqueue([parent, child], now=clock.now)
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, [child]) == [JobState.DEAD]
    await end(claimant, parent, "completed")
    assert await states_of(engine, [child]) == [JobState.DEAD]


# Replays


async def test_a_child_waits_for_the_replay(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,), parent_died="wait")
    await engine.jobs.enqueue([parent, child], now=clock.now)
    for _ in range(2):
        await end(claimant, parent, "dead")
        assert await states_of(engine, [child]) == [BLOCKED]
        await engine.jobs.replay([parent.id], token=new_id(), now=clock.now)
    await end(claimant, parent, "completed")
    assert await states_of(engine, [child]) == [READY]


@pytest.mark.parametrize(
    ("policy", "first_end"), [("run", "dead"), ("wait", "completed"), ("run", "completed")]
)
async def test_a_replayed_parent_counts_once(
    engine: Engine, clock: Clock, claimant: Claimant, policy: ParentDied, first_end: str
) -> None:
    first, second = a_parent(), a_parent()
    child = a_job(after=(first.id, second.id), parent_died=policy)
    await engine.jobs.enqueue([first, second, child], now=clock.now)
    await end(claimant, first, first_end)
    await engine.jobs.replay([first.id], token=new_id(), now=clock.now)
    await end(claimant, first, "completed")
    job = await job_of(engine, child.id)
    assert (job.state, job.waits_for) == (BLOCKED, 1)
    await end(claimant, second, "completed")
    assert await states_of(engine, [child]) == [READY]


async def test_a_replayed_child_waits_no_more(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    child = a_job(after=(parent.id,))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await end(claimant, parent, "dead")
    await engine.jobs.replay([child.id], token=new_id(), now=clock.now)
    assert (await job_of(engine, child.id)).waits_for == 0
    run = await claimant.take_one()
    assert run.id == child.id
    await engine.jobs.replay([parent.id], token=new_id(), now=clock.now)
    await end(claimant, parent, "dead")
    assert await claimant.complete(run) == [Answer.APPLIED]
    assert await states_of(engine, [child]) == [COMPLETED]


# Fans


async def finish_unblocking(engine: Engine, clock: Clock) -> list[int]:
    """Promote until nothing is left to do; how many each step moved."""
    moved = []
    while (step := await engine.jobs.promote(now=clock.now)).jobs:
        moved.append(step.jobs)
    return moved


@pytest.mark.parametrize("how", ["completed", "dead"])
async def test_a_fan_wider_than_one_step(engine: Engine, clock: Clock, claimant: Claimant, how: str) -> None:
    parent = a_parent()
    width = PROMOTE_LIMIT + 500
    children = some_jobs(width, after=(parent.id,))
    await engine.jobs.enqueue([parent], now=clock.now)
    for at in range(0, width, 500):
        await engine.jobs.enqueue(children[at : at + 500], now=clock.now)
    await end(claimant, parent, how)
    blocked = {counts.queue: counts.blocked for counts in await engine.inspect.counts(now=clock.now)}
    assert blocked["q"] >= width - PROMOTE_LIMIT
    moved = await finish_unblocking(engine, clock)
    assert sum(moved) == blocked["q"]
    assert all(step <= PROMOTE_LIMIT for step in moved)
    (counts,) = [each for each in await engine.inspect.counts(now=clock.now) if each.queue == "q"]
    assert counts.blocked == 0
    assert (counts.ready if how == "completed" else counts.cancelled) == width


async def test_claims_go_on_unblocking_a_wide_fan(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_parent()
    children = some_jobs(PROMOTE_LIMIT + 500, after=(parent.id,))
    await engine.jobs.enqueue([parent], now=clock.now)
    for at in range(0, len(children), 500):
        await engine.jobs.enqueue(children[at : at + 500], now=clock.now)
    await end(claimant, parent, "completed")
    taken = []
    for _ in range(4):
        taken += ids_of(await claimant.take(most=1_000))
    assert sorted(taken) == sorted(ids_of(children))


@pytest.mark.parametrize("how", ["drop", "prune", "replay"])
async def test_what_befalls_a_parent_later_does_not_undo_its_completion(
    engine: Engine, clock: Clock, claimant: Claimant, how: str
) -> None:
    """Half of a wide fan is still to be told when the parent goes, or runs again."""
    await configure(engine, "parents", QueueOptions(keep_completed=Keep(age=0.0)), now=clock.now)
    parent = a_parent()
    children = some_jobs(PROMOTE_LIMIT + 200, after=(parent.id,), parent_died="wait")
    await engine.jobs.enqueue([parent], now=clock.now)
    for at in range(0, len(children), 600):
        await engine.jobs.enqueue(children[at : at + 600], now=clock.now)
    await end(claimant, parent, "completed")
    match how:
        case "drop":
            await engine.jobs.drop([parent.id], now=clock.now)
        case "prune":
            assert (await engine.jobs.prune(now=clock.now + 1)).jobs == 1
        case "replay":
            await engine.jobs.replay([parent.id], token=new_id(), now=clock.now)
    await finish_unblocking(engine, clock)
    (counts,) = [each for each in await engine.inspect.counts(now=clock.now) if each.queue == "q"]
    assert (counts.blocked, counts.ready, counts.cancelled) == (0, len(children), 0)


async def test_a_fan_in_of_many(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parents = some_jobs(200)
    child = a_job(queue="last", after=tuple(ids_of(parents)))
    await engine.jobs.enqueue([*parents, child], now=clock.now)
    runs = await claimant.take(most=200)
    await claimant.complete(*runs[:-1])
    assert await states_of(engine, [child]) == [BLOCKED]
    await claimant.complete(runs[-1])
    assert await states_of(engine, [child]) == [READY]
