"""Rates: exact in every window by the engine's clock, nearly used up, and never returned."""

import random
from itertools import pairwise

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import Claim
from tidemill.model.queues.gate import (
    START_DELAY,
    counts_until,
    permits_of,
    step_at,
    tolerance_of,
)
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND, Instant, Span
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    some_jobs,
)

RATE = Rate(20, per=0.1)


def most_in_a_window(starts: list[Instant], rate: Rate) -> int:
    """The most starts that any window of the rate's length holds, both of its ends included."""
    return max(sum(first <= start <= first + rate.window for start in starts) for first in starts)


def some_starts(claim: Claim, draw: random.Random) -> list[Instant]:
    """Each job of a claim under a rate starts somewhere in its range."""
    starts = []
    for job in claim.jobs:
        assert job.start_within is not None
        starts.append(claim.now + job.start_in + draw.randint(0, job.start_within))
    return starts


def start_of(claim: Claim) -> tuple[Span, Span | None]:
    """What all jobs of a claim show alike."""
    (start,) = {(job.start_in, job.start_within) for job in claim.jobs}
    return start


@pytest.mark.row("E1", "E3")
@pytest.mark.parametrize("seed", range(3))
async def test_a_rate_is_exact_and_used(connect: Connect, clock: Clock, seed: int) -> None:
    """Greedy workers come at odd moments: no window is overfull, and hardly a permit is left unused."""
    draw = random.Random(seed)
    workers = [await a_claimant(await connect(), clock, name=f"w{n}") for n in range(2)]
    engine = workers[0].engine
    await configure(engine, "q", QueueOptions(rate=RATE), now=clock.now)
    await engine.jobs.enqueue(some_jobs(200), now=clock.now)
    windows, begin, starts = 6, clock.now, list[Instant]()
    while clock.now < begin + windows * permits_of(RATE).span:
        claim = await draw.choice(workers).claim(most=draw.randint(1, 4))
        starts += some_starts(claim, draw)
        clock.now += draw.randint(1, 900)
    assert most_in_a_window(starts, RATE) <= RATE.count
    assert len(starts) >= 0.98 * windows * RATE.count


@pytest.mark.row("E3")
async def test_a_burst_leaves_at_the_rate_and_loses_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    rate = Rate(50, per=10.0)
    await configure(engine, "q", QueueOptions(rate=rate), now=clock.now)
    await engine.jobs.enqueue(some_jobs(220), now=clock.now)
    starts, claims, draw = list[Instant](), list[Instant](), random.Random(7)
    while len(starts) < 220:
        claim = await claimant.claim()
        await claimant.complete(*claim.jobs)
        claims += [clock.now] * len(claim.jobs)
        starts += some_starts(claim, draw)
        assert len(starts) == 220 or claim.wait
        clock.now += claim.wait or 0
    assert most_in_a_window(starts, rate) == 50
    assert claims[-1] - claims[0] <= 4 * permits_of(rate).span * 1_002 // 1_000


@pytest.mark.row("E3")
async def test_ten_thousand_at_once_leave_at_the_rate(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    rate, begin = Rate(3_000, per=60.0), clock.now
    await configure(engine, "q", QueueOptions(rate=rate), now=clock.now)
    for _ in range(10):
        await engine.jobs.enqueue(some_jobs(1_000), now=clock.now)
    starts, draw, ran = list[Instant](), random.Random(3), set[bytes]()
    while len(ran) < 10_000:
        claim = await claimant.claim(most=1_000)
        await claimant.complete(*claim.jobs)
        starts += some_starts(claim, draw)
        ran |= {job.id for job in claim.jobs}
        clock.now += claim.wait or 0
    assert len(starts) == 10_000
    assert clock.now - begin <= 3 * permits_of(rate).span * 1_002 // 1_000
    starts.sort()
    for first, beyond in zip(starts, starts[rate.count :], strict=False):
        assert beyond - first > rate.window


@pytest.mark.row("E3")
@pytest.mark.parametrize("per", [0.1, 1.0, 20.0])
async def test_starts_keep_the_rate_though_each_run_is_late_by_another_time(
    connect: Connect, clock: Clock, per: float
) -> None:
    """Two workers claim as soon as they may. One starts its jobs as early as it may, the other as late."""
    rate = Rate(40, per=per)
    workers = [await a_claimant(await connect(), clock, name=f"w{n}") for n in range(2)]
    await configure(workers[0].engine, "q", QueueOptions(rate=rate), now=clock.now)
    await workers[0].engine.jobs.enqueue(some_jobs(300), now=clock.now)
    starts, turn = list[Instant](), 0
    while len(starts) < 300:
        turn += 1
        claim = await workers[turn % 2].claim(most=13)
        for job in claim.jobs:
            assert job.start_within is not None
            starts.append(clock.now + job.start_in + (turn % 2) * job.start_within)
        clock.now += 100 if claim.jobs else claim.wait or 0
    assert most_in_a_window(starts, rate) <= rate.count


@pytest.mark.row("E3")
async def test_runs_start_at_once_until_the_rate_is_pressed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    rate = Rate(4)
    await configure(engine, "q", QueueOptions(rate=rate), now=clock.now)
    await engine.jobs.enqueue(some_jobs(30), now=clock.now)
    free, pressed = (0, START_DELAY + tolerance_of(rate)), (START_DELAY, tolerance_of(rate))
    assert start_of(await claimant.claim(most=4)) == free
    opens = counts_until(rate, step_at(rate, clock.now))
    clock.now = opens
    assert start_of(await claimant.claim(most=3)) == pressed
    clock.now = opens + START_DELAY - 1
    assert start_of(await claimant.claim(most=1)) == pressed
    clock.now = counts_until(rate, step_at(rate, opens)) + START_DELAY
    assert start_of(await claimant.claim(most=3)) == free
    await engine.jobs.prune(now=clock.now)
    assert start_of(await claimant.claim(most=1)) == pressed


async def test_a_job_under_no_rate_may_start_at_any_time(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(
        concurrency=50,
        per_task={"t": Limit(rate=Rate(1)), "u": Limit(concurrency=3)},
        limits={"gold": Limit(rate=Rate(1, per=30.0))},
    )
    await configure(engine, "q", options, now=clock.now)
    jobs = [*some_jobs(1), *some_jobs(1, task="u"), *some_jobs(1, task="v"), a_job(task="v", key="gold")]
    await engine.jobs.enqueue(jobs, now=clock.now)
    within = {job.task + (job.key or ""): job.start_within for job in await claimant.take()}
    soon = START_DELAY + tolerance_of(Rate(1))
    assert within == {"t": soon, "u": None, "v": None, "vgold": soon}


async def test_a_repeated_claim_comes_too_late_to_start(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(4, per=60.0)), now=clock.now)
    await configure(engine, "plain", QueueOptions(concurrency=9), now=clock.now)
    await engine.jobs.enqueue([*some_jobs(1), *some_jobs(1, queue="plain")], now=clock.now)
    first = await claimant.take("q", "plain")
    assert {job.queue: job.start_within for job in first} == {"q": 300_000, "plain": None}
    again = await claimant.take("q", "plain", number=1)
    assert {job.queue: (job.start_in, job.start_within) for job in again} == {"q": (0, 0), "plain": (0, None)}


async def test_what_started_late_is_released_and_its_permit_is_lost(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(2, per=1.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    first, second = await claimant.take()
    await claimant.release(first, reason="late")
    (record,) = await engine.inspect.get([first.id])
    assert record is not None
    assert (record.reason, record.attempts) == ("late", 0)
    assert await claimant.take() == []
    clock.forward(1.1)
    assert [job.id for job in await claimant.take(most=1)] == [first.id]
    await claimant.complete(second)


@pytest.mark.row("E1")
@pytest.mark.parametrize(
    "options",
    [
        QueueOptions(rate=Rate(100, per=60.0, smooth=True)),
        QueueOptions(per_task={"t": Limit(rate=Rate(100, per=60.0, smooth=True))}),
        QueueOptions(per_key=Limit(rate=Rate(100, per=60.0, smooth=True))),
    ],
    ids=["queue", "task", "key"],
)
async def test_a_smooth_rate_is_evenly_spaced(
    engine: Engine, clock: Clock, claimant: Claimant, options: QueueOptions
) -> None:
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key="a") for _ in range(12)], now=clock.now)
    starts, even = list[Instant](), 600_000
    while len(starts) < 12:
        claim = await claimant.claim()
        assert len(claim.jobs) <= 1
        starts += [claim.now] * len(claim.jobs)
        assert claim.jobs or claim.wait
        clock.now += claim.wait or 0
    gaps = {after - before for before, after in pairwise(starts)}
    assert all(even < gap <= 1.012 * even for gap in gaps)


@pytest.mark.parametrize("seed", range(2))
async def test_a_fast_smooth_rate_is_kept_and_used(connect: Connect, clock: Clock, seed: int) -> None:
    rate, draw = Rate(1_000, per=1.0, smooth=True), random.Random(seed)
    workers = [await a_claimant(await connect(), clock, name=f"w{n}") for n in range(2)]
    await configure(workers[0].engine, "q", QueueOptions(rate=rate), now=clock.now)
    await workers[0].engine.jobs.enqueue(some_jobs(400), now=clock.now)
    begin, starts = clock.now, list[Instant]()
    while clock.now < begin + 300_000:
        starts += some_starts(await draw.choice(workers).claim(), draw)
        clock.now += draw.randint(1, 1_000)
    assert most_in_a_window(starts, Rate(100, per=0.1)) <= 105
    assert len(starts) >= 0.8 * 300 / 1.01


async def test_a_rate_that_becomes_smooth_keeps_its_starts(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(4, per=4.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    assert len(await claimant.take()) == 4
    await configure(engine, "q", QueueOptions(rate=Rate(4, per=4.0, smooth=True)), now=clock.now)
    assert await claimant.take() == []
    clock.forward(1.1)
    assert len(await claimant.take()) == 1
    assert await claimant.take() == []


@pytest.mark.parametrize("rate", [Rate(1, per=0.001), Rate(3, per=1.0), Rate(2, per=86_400.0)])
async def test_a_used_up_rate_opens_to_the_microsecond(
    engine: Engine, clock: Clock, claimant: Claimant, rate: Rate
) -> None:
    await configure(engine, "q", QueueOptions(rate=rate), now=clock.now)
    await engine.jobs.enqueue(some_jobs(10), now=clock.now)
    clock.now += 123_457
    opens = counts_until(rate, step_at(rate, clock.now))
    claim = await claimant.claim()
    assert len(claim.jobs) == rate.count
    assert claim.wait == opens - clock.now
    clock.now = opens - 1
    assert (await claimant.claim()).jobs == []
    clock.now = opens
    assert len(await claimant.take()) == rate.count


async def test_each_permit_comes_back_on_its_own(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    rate = Rate(3, per=1.0)
    await configure(engine, "q", QueueOptions(rate=rate), now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    opens = []
    for _ in range(3):
        opens.append(counts_until(rate, step_at(rate, clock.now)))
        assert len(await claimant.take(most=1)) == 1
        clock.forward(0.25)
    for moment in opens:
        clock.now = moment - 1
        assert await claimant.take() == []
        clock.now = moment
        assert len(await claimant.take()) == 1


async def test_a_rate_permit_is_never_returned(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(3, per=60.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    first, second, third = await claimant.take()
    await claimant.release(first)
    await claimant.complete(second)
    await claimant.fail(third, retry_in=0)
    assert await claimant.take() == []


async def test_a_repeated_claim_takes_no_second_permit(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(4, per=60.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    await claimant.take(most=2)
    assert len(await claimant.take(most=2, number=1)) == 2
    assert len(await claimant.take(most=9)) == 2


async def test_a_job_that_expired_uses_no_permit(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(1, per=60.0)), now=clock.now)
    await engine.jobs.enqueue([*some_jobs(2, expires=SECOND), a_job()], now=clock.now)
    clock.forward(1)
    assert len(await claimant.take()) == 1


@pytest.mark.row("F4")
async def test_each_key_has_its_own_rate(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(per_key=Limit(rate=Rate(2, per=1.0)))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "aaaaab"], now=clock.now)
    claim = await claimant.claim()
    assert sorted(job.key or "" for job in claim.jobs) == ["a", "a", "b"]
    assert claim.wait
    clock.now += claim.wait
    assert [job.key for job in await claimant.take()] == ["a", "a"]


async def test_the_narrowest_rate_decides(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(rate=Rate(5, per=1.0), per_task={"t": Limit(rate=Rate(2, per=10.0))})
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([*some_jobs(6), *some_jobs(9, task="u")], now=clock.now)
    assert sorted(job.task for job in await claimant.take()) == list("ttuuu")
    clock.forward(1.012)
    assert [job.task for job in await claimant.take()] == list("uuuuu")


async def test_a_rate_and_a_concurrency_hold_together(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(concurrency=2, rate=Rate(3, per=1.0))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    running = await claimant.take()
    assert len(running) == 2
    await claimant.complete(*running)
    assert len(await claimant.take()) == 1
    clock.forward(1.012)
    assert len(await claimant.take()) == 1


async def test_a_wider_rate_opens_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(1, per=3_600.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    assert len(await claimant.take()) == 1
    await configure(engine, "q", QueueOptions(), now=clock.now)
    assert len(await claimant.take()) == 3


async def test_a_rate_holds_for_claims_by_id_and_with_a_settle(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(2, per=60.0)), now=clock.now)
    jobs = some_jobs(5)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await claimant.take(ids=(jobs[4].id, new_id()))) == 1
    settled = await claimant.settle(claim=claimant.request())
    assert settled.claim is not None
    assert len(settled.claim.jobs) == 1


async def test_a_clock_that_steps_back_opens_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(2, per=1.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    assert len(await claimant.take()) == 2
    for before, after in pairwise((0.0, -0.3, -5.0)):
        clock.forward(after - before)
        assert await claimant.take() == []


async def test_starts_before_a_change_of_the_window_count_by_the_new_one(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(1_000, per=3_600.0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(20), now=clock.now)
    assert len(await claimant.take(most=5)) == 5
    await configure(engine, "q", QueueOptions(rate=Rate(5, per=1.0)), now=clock.now)
    assert await claimant.take() == []
    clock.forward(10)
    assert len(await claimant.take()) == 5
    await configure(engine, "q", QueueOptions(rate=Rate(5, per=3_600.0)), now=clock.now)
    clock.forward(60)
    await engine.jobs.prune(now=clock.now)
    assert await claimant.take() == []


async def test_windows_that_change_to_and_fro_keep_the_starts_apart(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """The second start is as long after the first as a step of the long window is longer than one of the
    short: moved one after the other, the first would meet the second."""
    short, long = QueueOptions(rate=Rate(2, per=0.01)), QueueOptions(rate=Rate(2, per=10.0))
    await configure(engine, "q", short, now=clock.now)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    assert len(await claimant.take(most=1)) == 1
    clock.now += 9_990
    assert len(await claimant.take(most=1)) == 1
    for options in (long, short, long):
        await configure(engine, "q", options, now=clock.now)
    assert await claimant.take() == []
    clock.now += 11 * SECOND
    assert len(await claimant.take()) == 1
