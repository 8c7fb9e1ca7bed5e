"""`jobs.prune`: retention by age and by count, in bounded steps."""

import pytest

from tidemill.engine.protocol import BATCH_LIMIT, PRUNE_LEAST, PRUNE_LIMIT, Engine
from tidemill.model.errors import BadInput, ClaimantRetired
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.queue import TOMBSTONE_AGE, Keep, QueueOptions
from tidemill.model.time import DAY, SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    configure,
    created,
    ids_of,
    snapshot,
    some_jobs,
    states_of,
)


async def finish(claimant: Claimant, count: int) -> list[bytes]:
    """Complete this many jobs, a second apart; their ids, oldest end first."""
    ids = []
    for _ in range(count):
        await claimant.engine.jobs.enqueue([a_job()], now=claimant.clock.now)
        run = await claimant.take_one()
        await claimant.complete(run)
        ids.append(run.id)
        claimant.clock.forward(1)
        await claimant.heartbeat()
    return ids


@pytest.mark.row("C6")
async def test_the_old_go(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(age=10.0)), now=clock.now)
    ids = await finish(claimant, 4)
    clock.forward(8)  # they ended 12, 11, 10 and 9 seconds ago: only what is younger than 10 stays
    pruned = await engine.jobs.prune(now=clock.now)
    assert (pruned.jobs, pruned.more) == (3, False)
    assert [job and job.id for job in await engine.inspect.get(ids)] == [None, None, None, ids[3]]


@pytest.mark.row("C6")
async def test_the_newest_are_kept(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=2)), now=clock.now)
    ids = await finish(claimant, 5)
    pruned = await engine.jobs.prune(now=clock.now)
    assert (pruned.jobs, pruned.more) == (3, False)
    assert [job and job.id for job in await engine.inspect.get(ids)] == [None, None, None, *ids[3:]]


@pytest.mark.row("C6")
async def test_what_a_queue_does_not_say_is_kept_as_the_engine_keeps(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Also in a queue that says something else, and in one that no longer says it."""
    usual = engine.keeps
    assert usual.age is not None
    assert (usual.count or 0) >= 1_000, "those who wait for a result need time to fetch it"
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=1)), now=clock.now)
    await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
    ids = await finish(claimant, 3)
    (queue,) = await engine.queues.list()
    assert queue.options == QueueOptions(concurrency=5), "what is shown is what was said"
    clock.forward(usual.age - 4)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 0
    clock.forward(2)  # the first ended as long ago as that, the others a second or two less
    assert (await engine.jobs.prune(now=clock.now)).jobs == 2
    assert [job and job.id for job in await engine.inspect.get(ids)] == [None, None, ids[2]]


async def test_age_and_count_hold_together(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(keep_completed=Keep(age=100.0, count=3))
    await configure(engine, "q", options, now=clock.now)
    ids = await finish(claimant, 5)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 2
    clock.forward(200)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 3
    assert await engine.inspect.get(ids) == [None] * 5


async def test_each_state_and_queue_is_kept_by_its_own_rule(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(keep_completed=Keep(age=10.0), keep_dead=Keep(age=20.0), keep_cancelled=Keep())
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([*some_jobs(3), a_job(queue="default")], now=clock.now)
    done, dead, stopped = await claimant.take()
    other = await claimant.take_one("default")
    await claimant.complete(done, other)
    await claimant.fail(dead)
    await claimant.stop(stopped)
    jobs = [done, dead, stopped, other]
    left = []
    for wait in (11, 10, DAY // SECOND):
        clock.forward(wait)
        await engine.jobs.prune(now=clock.now)
        left.append([state is not None for state in await states_of(engine, jobs)])
    assert left == [[False, True, True, True], [False, False, True, True], [False, False, True, False]]


async def test_dead_letters_stay_for_ever_by_default(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    dead = await claimant.take_one()
    await claimant.fail(dead)
    clock.now += 3_650 * DAY
    assert (await engine.jobs.prune(now=clock.now)).jobs == 0
    assert await states_of(engine, [dead]) == [JobState.DEAD]


async def test_live_jobs_are_never_pruned(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(
        keep_completed=Keep(age=0.0), keep_dead=Keep(age=0.0), keep_cancelled=Keep(age=0.0)
    )
    await configure(engine, "q", options, now=clock.now)
    running, ready, later = a_job(), a_job(), a_job(delay=3_650 * DAY)
    blocked = a_job(after=(later.id,))
    await engine.jobs.enqueue([running, ready, later, blocked], now=clock.now)
    await claimant.take_one()
    clock.now += 100 * DAY
    assert (await engine.jobs.prune(now=clock.now)).jobs == 0
    assert await states_of(engine, [running, ready, later, blocked]) == [
        JobState.RUNNING,
        JobState.READY,
        JobState.SCHEDULED,
        JobState.BLOCKED,
    ]


async def test_a_prune_is_bounded_and_begins_with_the_oldest(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(age=1.0)), now=clock.now)
    ids = await finish(claimant, 5)
    clock.forward(100)
    seen = []
    for _ in range(3):
        pruned = await engine.jobs.prune(limit=2, now=clock.now)
        seen.append((pruned.jobs, sum(job is None for job in await engine.inspect.get(ids))))
        assert pruned.more or pruned.jobs < 2
    assert seen == [(2, 2), (2, 4), (1, 5)]
    assert (await engine.jobs.prune(limit=2, now=clock.now)).more is False


async def test_the_bound_holds_over_all_queues(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for queue in "abc":
        await configure(engine, queue, QueueOptions(keep_completed=Keep(age=1.0)), now=clock.now)
        await engine.jobs.enqueue(some_jobs(4, queue=queue), now=clock.now)
    await claimant.complete(*await claimant.take("a", "b", "c"))
    clock.forward(100)
    pruned: list[int] = []
    while sum(pruned) < 12:
        pruned.append((await engine.jobs.prune(limit=5, now=clock.now)).jobs)
    assert max(pruned) <= 5
    assert (await engine.jobs.prune(now=clock.now)).jobs == 0


@pytest.mark.row("C3")
async def test_retention_does_not_falsify_the_window(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=1)), now=clock.now)
    await finish(claimant, 5)
    await engine.jobs.prune(now=clock.now)
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.completed, counts.window.completed) == (1, 5)


async def test_minute_counts_go_after_a_month(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    start = clock.now
    await finish(claimant, 2)

    async def counted() -> int:
        span = 10 * 60 * SECOND
        points = await engine.inspect.series(since=start, until=start + span, step=span)
        return sum(point.finished.completed for point in points)

    clock.now = start + 31 * DAY
    await engine.jobs.prune(now=clock.now)
    assert await counted() == 2
    clock.now = start + 33 * DAY
    await engine.jobs.prune(now=clock.now)
    assert await counted() == 0


async def test_a_tombstone_answers_for_an_hour(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    clock.now += TOMBSTONE_AGE - 1
    await engine.jobs.prune(now=clock.now)
    assert await claimant.complete(run) == [Answer.ALREADY]
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [False]
    clock.now += 2
    await engine.jobs.prune(now=clock.now)
    assert await claimant.complete(run) == [Answer.STALE]
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [True]


async def test_a_child_that_waited_for_a_pruned_parent_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "p", QueueOptions(keep_dead=Keep(age=1.0)), now=clock.now)
    parent = a_job(queue="p")
    child = a_job(after=(parent.id,), parent_died="wait")
    await engine.jobs.enqueue([parent, child], now=clock.now)
    await claimant.fail(await claimant.take_one("p"))
    clock.forward(2)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 1
    assert await states_of(engine, [parent, child]) == [None, JobState.CANCELLED]


async def test_a_retired_claimant_is_remembered_for_an_hour(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await engine.jobs.retire(claimant.id, now=clock.now)
    clock.forward(3_599)
    await engine.jobs.prune(now=clock.now)
    await claimant.heartbeat()
    with pytest.raises(ClaimantRetired):
        await claimant.claim()


async def test_nothing_to_prune_changes_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await finish(claimant, 3)
    before = await snapshot(engine, clock)
    pruned = await engine.jobs.prune(now=clock.now)
    assert (pruned.jobs, pruned.more) == (0, False)
    assert await snapshot(engine, clock) == before


async def test_a_whole_batch_goes_in_few_calls(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """A call may stop before all is done, because it has taken long; but not at once, and it says so."""
    await configure(engine, "r", QueueOptions(keep_completed=Keep(count=10)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(BATCH_LIMIT, queue="r"), now=clock.now)
    runs = await claimant.take("r", most=BATCH_LIMIT)
    await claimant.complete(*runs)
    pruned = [await engine.jobs.prune(now=clock.now)]
    while pruned[-1].more:
        pruned.append(await engine.jobs.prune(now=clock.now))
    assert sum(one.jobs for one in pruned) == BATCH_LIMIT - 10
    assert all(one.jobs >= PRUNE_LEAST for one in pruned if one.more)
    kept = [job for job in await engine.inspect.get(ids_of(runs)) if job]
    assert len(kept) == 10


async def test_a_prune_has_a_largest_size(engine: Engine) -> None:
    with pytest.raises(BadInput):
        await engine.jobs.prune(limit=PRUNE_LIMIT + 1)


async def test_jobs_that_end_at_the_moment_of_a_prune_are_found_by_the_next(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=1)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    first, second, third, fourth = await claimant.take()
    await claimant.complete(fourth, third)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 1
    await claimant.complete(first, second)
    assert (await engine.jobs.prune(now=clock.now)).jobs == 2
