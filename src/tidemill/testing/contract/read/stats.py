"""`inspect.stats`: waiting and run times from members' batches, and samples of queues. Since when the oldest
job is ready."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.stats.batch import OTHER_TASKS, TASKS_KEPT, StatsBatch, StatsRow
from tidemill.model.stats.histogram import Histogram, histogram_of, pack_both
from tidemill.model.stats.sample import QueueSample
from tidemill.model.stats.series import StatsPoint, StatsSeries
from tidemill.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Instant, Span
from tidemill.model.view import Finished
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    some_jobs,
)


def a_row(
    queue: str = "q", task: str = "t", *, wait: tuple[Span, ...] = (), run: tuple[Span, ...] = ()
) -> StatsRow:
    return StatsRow(queue, task, pack_both(histogram_of(wait), histogram_of(run)))


async def hand_over(claimant: Claimant, number: int, *rows: StatsRow, now: Instant | None = None) -> None:
    """A heartbeat with a batch."""
    await claimant.engine.members.heartbeat(
        claimant.member, statistics=StatsBatch(number, rows), now=claimant.clock.now if now is None else now
    )


async def stats_of(engine: Engine, **options: object) -> dict[tuple[str, str | None], StatsPoint]:
    """The first minute as one step, unless it is said otherwise."""
    bounds: dict[str, object] = {"since": START, "until": START + MINUTE, **options}
    found: list[StatsSeries] = await engine.inspect.stats(**bounds)  # type: ignore[arg-type]
    for series in found:
        assert len(series.points) == 1
    return {(series.queue, series.task): series.points[0] for series in found}


async def jobs_waited(engine: Engine, **options: object) -> dict[tuple[str, str | None], int]:
    return {of: point.wait.count for of, point in (await stats_of(engine, **options)).items()}


async def test_batches_add_up_by_queue_and_by_task(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    other = await a_claimant(engine, clock, name="other")
    await hand_over(claimant, 1, a_row(wait=(SECOND,), run=(2 * SECOND, HOUR)), a_row(task="u", wait=(5,)))
    clock.forward(2)
    await hand_over(claimant, 2, a_row(wait=(SECOND, MINUTE)), a_row(queue="p", run=(100 * HOUR,)))
    await hand_over(other, 1, a_row(wait=(SECOND,), run=(2 * SECOND,)))
    wait, run = (
        histogram_of((SECOND, SECOND, SECOND, MINUTE)),
        histogram_of((2 * SECOND, 2 * SECOND, HOUR)),
    )
    by_task = await stats_of(engine, by="task")
    assert by_task == {
        ("p", "t"): StatsPoint(at=START, run=histogram_of((100 * HOUR,))),
        ("q", "t"): StatsPoint(at=START, wait=wait, run=run),
        ("q", "u"): StatsPoint(at=START, wait=histogram_of((5,))),
    }
    assert list(by_task) == sorted(by_task)
    by_queue = await stats_of(engine)
    assert by_queue["p", None] == by_task["p", "t"]
    assert by_queue["q", None].wait == wait + histogram_of((5,))
    assert by_queue["q", None].run == run
    assert list(await stats_of(engine, queue="q")) == [("q", None)]
    assert list(await stats_of(engine, by="task", queue="q")) == [("q", "t"), ("q", "u")]
    assert list(await stats_of(engine, by="task", task="t")) == [("p", "t"), ("q", "t")]
    assert await stats_of(engine, queue="nothing") == {}


async def test_a_batch_counts_once_whatever_replies_are_lost(
    connect: Connect, clock: Clock, engine: Engine, claimant: Claimant
) -> None:
    await hand_over(claimant, 1, a_row(wait=(SECOND,)))
    claimant.engine = await connect()
    await hand_over(claimant, 1, a_row(wait=(SECOND,)))
    clock.forward(2)
    await hand_over(claimant, 1, a_row(wait=(SECOND,)))
    await hand_over(claimant, 3, a_row(wait=(SECOND,)))
    await hand_over(claimant, 2, a_row(wait=(SECOND,)))  # it comes too late
    await claimant.heartbeat()
    await hand_over(claimant, 3, a_row(wait=(SECOND,)))
    await hand_over(claimant, 4)
    await hand_over(claimant, 4, a_row(wait=(SECOND,)))
    assert await jobs_waited(engine) == {("q", None): 2}
    assert await jobs_waited(engine, by="task") == {("q", "t"): 2}


async def test_a_batch_counts_with_the_first_heartbeat_and_for_a_member_that_comes_back(
    engine: Engine, clock: Clock
) -> None:
    newcomer = Claimant(engine, clock)
    await hand_over(newcomer, 7, a_row(wait=(SECOND,)))
    await hand_over(newcomer, 7, a_row(wait=(SECOND,)))
    assert await jobs_waited(engine) == {("q", None): 1}
    await engine.members.leave(newcomer.member.id, now=clock.now)
    assert await jobs_waited(engine) == {("q", None): 1}
    await hand_over(newcomer, 8, a_row(wait=(SECOND,)))
    assert await jobs_waited(engine) == {("q", None): 2}


async def test_a_batch_and_what_a_claimant_holds_go_together(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    claimant.held.clear()
    reply = await engine.members.heartbeat(
        claimant.member,
        [claimant.heartbeat_of()],
        statistics=StatsBatch(1, (a_row(wait=(0,)),)),
        now=clock.now,
    )
    assert reply.lost == []
    assert (await claimant.take_one()).id == run.id
    assert await jobs_waited(engine) == {("q", None): 1}


async def test_a_series_by_steps(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for number, minute in enumerate((0, 1, 3, 61), 1):
        clock.now = START + minute * MINUTE + 59 * SECOND
        await engine.jobs.enqueue([a_job()], now=clock.now)
        await hand_over(claimant, number, a_row(wait=(SECOND,)))
        await claimant.complete(await claimant.take_one())

    async def series(since: Instant, until: Instant, step: Span | None) -> list[tuple[Instant, int, int]]:
        (found,) = await engine.inspect.stats(since=since, until=until, step=step) or [
            StatsSeries(queue="q", task=None, points=[])
        ]
        return [(p.at, p.wait.count, p.finished.completed) for p in found.points]

    end = START + 2 * HOUR
    minutes = [(START + n * MINUTE, 1, 1) for n in (0, 1, 3, 61)]
    assert START % HOUR == 0, "the steps below are of whole hours"
    assert await series(START + 1, end, MINUTE) == minutes
    assert await series(START + MINUTE + 30, START + 61 * MINUTE, MINUTE) == minutes[1:3]
    assert await series(START + MINUTE + 30, START + 61 * MINUTE + 1, MINUTE) == minutes[1:]
    assert await series(START + 5 * MINUTE, end, HOUR) == [(START, 3, 3), (START + HOUR, 1, 1)]
    assert await series(START + MINUTE + 30, end, None) == [(START + MINUTE, 3, 3)]
    assert await series(START + 5 * MINUTE, START + 60 * MINUTE, None) == []
    await engine.jobs.prune(now=clock.now + MINUTE)  # some engines put minutes that are over together
    assert await series(START + 1, end, MINUTE) == minutes
    await hand_over(claimant, 9, a_row(wait=(SECOND,)), now=START + MINUTE)
    await engine.jobs.prune(now=clock.now + MINUTE)
    assert (await series(START, end, MINUTE))[1] == (START + MINUTE, 2, 1)


async def test_what_ended_is_exact_without_any_batch(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    done, failed, *_ = await claimant.take()
    await claimant.complete(done)
    await claimant.fail(failed)
    assert await stats_of(engine) == {
        ("q", None): StatsPoint(at=START, finished=Finished(completed=1, failed=1, died=1))
    }
    assert await stats_of(engine, by="task") == {}


async def test_a_minute_has_rows_for_a_bounded_number_of_tasks(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    names = [f"t{n:03}" for n in range(TASKS_KEPT + 40)]
    first, more = names[:150], names[100:]
    await hand_over(claimant, 1, *(a_row(task=name, wait=(SECOND,)) for name in first))
    await hand_over(claimant, 2, *(a_row(task=name, wait=(SECOND,)) for name in more))
    await hand_over(claimant, 3, a_row("p", "z", wait=(5,)), a_row("p", OTHER_TASKS, wait=(5,)))
    clock.forward(60)
    await engine.jobs.prune(now=clock.now)  # the bound holds at the latest from here on
    found = await jobs_waited(engine, by="task")
    assert len([task for _, task in found if task != OTHER_TASKS]) == TASKS_KEPT
    of_q = {task: count for (queue, task), count in found.items() if queue == "q"}
    assert sum(of_q.values()) == len(first) + len(more)
    assert of_q[OTHER_TASKS] >= 40
    assert sum(count for (queue, _), count in found.items() if queue == "p") == 2
    assert await jobs_waited(engine) == {("p", None): 2, ("q", None): len(first) + len(more)}
    await hand_over(claimant, 4, a_row(task="anew", wait=(SECOND,)))  # another minute has room again
    assert await jobs_waited(engine, by="task", since=clock.now, until=clock.now + MINUTE) == {
        ("q", "anew"): 1
    }


async def test_statistics_are_deleted_after_32_days(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await hand_over(claimant, 1, a_row(wait=(SECOND,)))
    await engine.queues.sample(START, [QueueSample(queue="q", stock=3)], now=clock.now)
    clock.now = START + 31 * DAY
    await claimant.heartbeat()
    await hand_over(claimant, 2, a_row(wait=(SECOND,)))
    await engine.jobs.prune(now=clock.now)
    assert (await stats_of(engine))["q", None].stock == 3
    assert await jobs_waited(engine, by="task") == {("q", "t"): 1}
    clock.now = START + 32 * DAY + 2 * HOUR
    await engine.jobs.prune(now=clock.now)
    assert await stats_of(engine) == {}
    assert await stats_of(engine, by="task") == {}
    assert await jobs_waited(engine, until=clock.now) == {("q", None): 1}


# Samples


async def test_the_first_samples_of_a_minute_count(connect: Connect, clock: Clock) -> None:
    engine, other = await connect(), await connect()
    first = [
        QueueSample(queue="q", stock=7, arrived=3, oldest_ready=SECOND),
        QueueSample(queue="p", stock=0),
    ]
    assert await engine.queues.sample(START, first, now=clock.now) is True
    assert await engine.queues.sample(START, first, now=clock.now) is False
    late = [QueueSample(queue="r", stock=9, arrived=9), QueueSample(queue="q", stock=9, arrived=9)]
    assert await other.queues.sample(START, late, now=clock.now) is False
    assert await stats_of(engine) == {
        ("p", None): StatsPoint(at=START, stock=0),
        ("q", None): StatsPoint(at=START, stock=7, arrived=3, oldest_ready=SECOND),
    }
    assert await stats_of(engine, by="task") == {}


async def test_a_step_has_the_sum_the_longest_and_the_last(engine: Engine, clock: Clock) -> None:
    for minute, stock, arrived, oldest in ((0, 7, None, SECOND), (2, 5, 2, 9 * SECOND), (1, 6, 3, None)):
        sample = QueueSample(queue="q", stock=stock, arrived=arrived, oldest_ready=oldest)
        assert await engine.queues.sample(START + minute * MINUTE, [sample], now=clock.now)
    assert await stats_of(engine, until=START + HOUR) == {
        ("q", None): StatsPoint(at=START, stock=5, arrived=5, oldest_ready=9 * SECOND)
    }
    assert (await stats_of(engine, until=START + 2 * MINUTE))["q", None].stock == 6


# The oldest ready job


async def oldest_ready(engine: Engine, clock: Clock, queue: str = "q") -> Instant | None:
    counts = {each.queue: each for each in await engine.inspect.counts(now=clock.now)}
    return counts[queue].oldest_ready_at


async def test_since_when_the_oldest_job_is_ready(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(), now=clock.now)
    assert await oldest_ready(engine, clock) is None
    await engine.jobs.enqueue(
        [a_job(priority=9), a_job(delay=HOUR), a_job(queue="p", delay=HOUR)], now=clock.now
    )
    clock.forward(5)
    await engine.jobs.enqueue([a_job(priority=2), a_job(priority=9)], now=clock.now)
    assert await oldest_ready(engine, clock) == START
    assert await oldest_ready(engine, clock, "p") is None
    await claimant.heartbeat()
    await claimant.take(most=2)  # the urgent one, and the oldest
    assert await oldest_ready(engine, clock) == START + 5 * SECOND
    await claimant.take(most=2)
    assert await oldest_ready(engine, clock) is None


async def test_a_job_behind_a_full_gate_waits_too(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await engine.jobs.enqueue([a_job(key="a"), a_job(key="a")], now=clock.now)
    clock.forward(3)
    await engine.jobs.enqueue([a_job(key="b"), a_job(key="c")], now=clock.now)
    await claimant.heartbeat()
    assert len(await claimant.take(most=2)) == 2
    assert await claimant.take(most=1) != []
    assert await claimant.take() == []
    assert await oldest_ready(engine, clock) == START


async def test_the_heads_of_many_lanes(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    for second, priority in ((0, 7), (1, 3), (2, 5)):
        clock.now = START + second * SECOND
        await engine.jobs.enqueue(
            [a_job(key=f"k{n % 20}", priority=priority) for n in range(40)], now=clock.now
        )
    assert await oldest_ready(engine, clock) == START


# Bad input

BAD_ROWS = {
    "a queue with a bad name": StatsRow("a b", "t", (128,)),
    "a task with a bad name": StatsRow("q", "a b", (128,)),
    "a cell that does not exist": StatsRow("q", "t", (128 | 88,)),
    "a cell twice": StatsRow("q", "t", (128, 256)),
    "no count": StatsRow("q", "t", (5,)),
    "a count beyond all bounds": StatsRow("q", "t", (1 << 60,)),
    "a text": StatsRow("q", "t", ("x",)),  # type: ignore[arg-type]
    "a list": StatsRow("q", "t", [128]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("wrong", BAD_ROWS)
async def test_rows_that_cannot_be_kept_are_refused(
    engine: Engine, clock: Clock, claimant: Claimant, wrong: str
) -> None:
    with pytest.raises(BadInput):
        await hand_over(claimant, 1, a_row(wait=(SECOND,)), BAD_ROWS[wrong])
    assert await stats_of(engine) == {}


async def test_calls_that_cannot_be_answered_are_refused(engine: Engine, clock: Clock) -> None:
    stats, sample = engine.inspect.stats, engine.queues.sample
    for call in (
        stats(since=START, until=START + HOUR, step=90 * SECOND),
        stats(since=START, until=START + 32 * DAY * 10, step=MINUTE),
        stats(since=-1, until=START),
        stats(since=START, until=START, task="t"),
        stats(since=START, until=START, by="key"),  # type: ignore[arg-type]
        stats(since=START, until=START, queue="a b"),
        sample(START + 1, [QueueSample(queue="q", stock=1)], now=clock.now),
        sample(START, [QueueSample(queue="a b", stock=1)], now=clock.now),
        sample(START, [QueueSample(queue="q", stock=-1)], now=clock.now),
        sample(START, [QueueSample(queue="q", stock=1, arrived=-1)], now=clock.now),
    ):
        with pytest.raises(BadInput):
            await call
    assert await stats_of(engine) == {}


async def test_lengths_keep_their_bucket(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """The shortest and the longest, and large counts."""
    lengths = (0, MILLISECOND, 2 * MILLISECOND, 40 * HOUR)
    many = Histogram({0: 1 << 39, 43: 7})
    await hand_over(claimant, 1, a_row(wait=lengths), StatsRow("q", "u", pack_both(many, many)))
    await hand_over(claimant, 2, StatsRow("q", "u", pack_both(many, many)))
    found = await stats_of(engine, by="task")
    assert found["q", "t"].wait == histogram_of(lengths)
    assert found["q", "u"].wait == found["q", "u"].run == many + many
