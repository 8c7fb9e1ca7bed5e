"""`inspect.counts`, `inspect.series` and `inspect.audit`: numbers, and who did what."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import DAY, HOUR, MINUTE, SECOND
from tidemill.model.view import Finished, QueueCounts, SeriesPoint
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    a_job,
    configure,
    ids_of,
    some_jobs,
)


async def one_count(engine: Engine, clock: Clock, **options: int) -> QueueCounts:
    (counts,) = await engine.inspect.counts(now=clock.now, **options)
    return counts


@pytest.mark.row("C3")
async def test_empty_queues_are_counted_too(engine: Engine, clock: Clock) -> None:
    for queue in ("b", "a"):
        await configure(engine, queue, QueueOptions(), now=clock.now)
    counts = await engine.inspect.counts(now=clock.now)
    assert [each.queue for each in counts] == ["a", "b"]
    for each in counts:
        assert [each.in_state(state) for state in JobState] == [0] * 7
        assert each.window == Finished()


@pytest.mark.row("C3")
async def test_every_state_is_counted(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(10), now=clock.now)
    runs = await claimant.take()
    await claimant.complete(*runs[:4])
    await claimant.fail(*runs[4:7])
    await claimant.stop(*runs[7:9])
    await engine.jobs.enqueue([*some_jobs(5), *some_jobs(6, delay=SECOND)], now=clock.now)
    await engine.jobs.enqueue(some_jobs(7, after=(runs[9].id,)), now=clock.now)
    counts = await one_count(engine, clock)
    assert [counts.in_state(state) for state in JobState] == [7, 6, 5, 1, 4, 3, 2]
    assert counts.window == Finished(completed=4, failed=3, died=3, cancelled=2)
    assert 0 <= counts.age <= SECOND


async def test_counts_follow_every_move(connect: Connect, clock: Clock) -> None:
    """Live counts come from what is there, not from a sum that can drift."""
    engine, other = await connect(), await connect()
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(8), now=clock.now)
    for turn in range(4):
        runs = await claimant.take(most=4)
        await claimant.release(runs[0])
        await claimant.fail(runs[1], retry_in=SECOND)
        await claimant.complete(runs[2])
        await claimant.release(runs[3], delay=SECOND)
        clock.forward(2)
        await claimant.heartbeat()
        await engine.jobs.promote(now=clock.now)
        counts = await one_count(other, clock)
        assert (counts.ready, counts.scheduled, counts.running) == (7 - turn, 0, 0)
        assert (counts.completed, counts.window.failed) == (turn + 1, turn + 1)


async def test_failed_attempts_are_counted_retried_or_not(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    for _ in range(3):
        await claimant.fail(await claimant.take_one(), retry_in=0)
    await claimant.complete(await claimant.take_one())
    assert (await one_count(engine, clock)).window == Finished(completed=1, failed=3)


@pytest.mark.row("C3")
async def test_a_window_is_of_whole_minutes_with_the_present_one(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    for _ in range(4):  # one in each of the minutes 0..3
        await engine.jobs.enqueue([a_job()], now=clock.now)
        await claimant.heartbeat()
        await claimant.complete(await claimant.take_one())
        clock.forward(60)
    clock.now = START + 3 * MINUTE + 30 * SECOND
    counted = [(await one_count(engine, clock, window=n * MINUTE)).window.completed for n in (1, 2, 3, 9)]
    assert counted == [1, 2, 3, 4]
    halves = [(await one_count(engine, clock, window=n * MINUTE // 2)).window.completed for n in (1, 3, 5)]
    assert halves == [1, 1, 2]
    clock.now = START + DAY + 10 * MINUTE
    assert (await one_count(engine, clock)).window.completed == 0
    assert (await one_count(engine, clock)).completed == 4


@pytest.mark.row("C3")
async def test_deleted_jobs_stay_counted(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await claimant.complete(*await claimant.take())
    counts = await one_count(engine, clock)
    assert (counts.completed, counts.window.completed) == (0, 3)


async def test_a_replay_does_not_undo_what_was_counted(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run)
    await engine.jobs.replay([run.id], token=new_id(), now=clock.now)
    await claimant.complete(await claimant.take_one())
    counts = await one_count(engine, clock)
    assert counts.window == Finished(completed=1, failed=1, died=1)
    assert (counts.completed, counts.dead) == (1, 0)


# Series


async def test_a_series_has_every_step(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for minute, queue in ((0, "a"), (0, "b"), (2, "a"), (7, "a")):
        clock.now = START + minute * MINUTE + 59 * SECOND
        await claimant.heartbeat()
        await engine.jobs.enqueue([a_job(queue=queue)], now=clock.now)
        run = await claimant.take_one(queue)
        await (claimant.fail(run) if minute == 7 else claimant.complete(run))

    async def series(step: int, queue: str | None = None) -> list[SeriesPoint]:
        return await engine.inspect.series(since=START + 30, until=START + 8 * MINUTE, step=step, queue=queue)

    points = await series(2 * MINUTE)
    assert [point.at for point in points] == [START + n * MINUTE for n in (0, 2, 4, 6)]
    one_dead = Finished(failed=1, died=1)
    assert [point.finished for point in points] == [
        Finished(completed=2),
        Finished(completed=1),
        Finished(),
        one_dead,
    ]
    assert [point.finished.completed for point in await series(4 * MINUTE, "b")] == [1, 0]
    assert [point.finished for point in await series(4 * MINUTE, "nothing")] == [Finished()] * 2


async def test_until_is_exclusive_and_since_is_rounded_down(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    clock.now = START + HOUR
    await claimant.heartbeat()
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.complete(await claimant.take_one())
    inspect = engine.inspect
    before = await inspect.series(since=START, until=START + HOUR, step=HOUR)
    assert [(point.at, point.finished.completed) for point in before] == [(START, 0)]
    there = await inspect.series(since=START + HOUR + 5, until=START + HOUR + 6, step=HOUR)
    assert [(point.at, point.finished.completed) for point in there] == [(START + HOUR, 1)]


# Audit


@pytest.mark.row("B10")
async def test_every_action_of_an_operator_is_written_down(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    run = await claimant.take_one()
    template = Schedule(name="s", timing=Every(seconds=60), job=a_job())
    await configure(engine, "q", QueueOptions(), now=START)
    actions = [
        engine.queues.override("q", {"concurrency": 9}, by="ann", now=clock.now),
        engine.queues.reset("q", by="ann", now=clock.now),
        engine.queues.retire("q", "shop", declared_at=START, by="ann", now=clock.now),
        engine.queues.pause("q", by="ann", why="hot", now=clock.now),
        engine.queues.resume("q", by="ann", now=clock.now),
        engine.jobs.cancel([run.id], by="ann", now=clock.now),
        engine.schedules.put([template], by="ann", now=clock.now),
        engine.schedules.pause("s", paused=True, by="ann", now=clock.now),
        engine.schedules.remove("s", by="ann", now=clock.now),
    ]
    for number, action in enumerate(actions, 1):
        clock.forward(1)
        await action
        assert len(await engine.inspect.audit()) == number
    entries = await engine.inspect.audit()
    assert [entry.by for entry in entries] == ["ann"] * len(actions)
    assert [entry.number for entry in entries] == sorted((entry.number for entry in entries), reverse=True)
    assert all(entry.action for entry in entries)


async def test_what_changed_nothing_or_nobody_signed_is_not_written(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", QueueOptions(), now=clock.now)
    await engine.queues.pause("q", now=clock.now)
    await engine.queues.resume("q", now=clock.now)
    await engine.queues.resume("q", by="ann", now=clock.now)
    await engine.queues.reset("q", by="ann", now=clock.now)
    await engine.queues.retire("q", "another", declared_at=START, by="ann", now=clock.now)
    await engine.jobs.cancel([new_id()], by="ann", now=clock.now)
    await engine.jobs.drop([new_id()], by="ann", now=clock.now)
    await engine.jobs.replay([new_id()], token=new_id(), by="ann", now=clock.now)
    await engine.schedules.remove("nothing", by="ann", now=clock.now)
    await engine.schedules.pause("nothing", paused=True, by="ann", now=clock.now)
    assert await engine.inspect.audit() == []


async def test_one_call_is_one_entry(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    runs = await claimant.take()
    await claimant.fail(*runs)
    await engine.jobs.replay(ids_of(runs), token=new_id(), by="ann", now=clock.now)
    await engine.jobs.cancel(ids_of(runs), by="bob", now=clock.now)
    await engine.jobs.drop(ids_of(runs), by="eve", now=clock.now)
    assert [entry.by for entry in await engine.inspect.audit()] == ["eve", "bob", "ann"]


async def test_the_audit_is_read_page_by_page(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", QueueOptions(), now=clock.now)
    for n in range(7):
        clock.forward(1)
        await engine.queues.override("q", {"concurrency": n + 1}, by=f"{n}", now=clock.now)
    seen, before = [], None
    while page := await engine.inspect.audit(before=before, limit=3):
        seen += [entry.by for entry in page]
        before = page[-1].number
    assert seen == list("6543210")
    newest = (await engine.inspect.audit(limit=1))[0]
    assert (newest.at, "q" in newest.target) == (clock.now, True)
