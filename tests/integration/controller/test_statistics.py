"""Samples of queues by the controller: arrivals add up, whichever controller samples, and whenever."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.schedules.terms import Trusted
from tidemill.controller.ticks.statistics import StatisticsTick
from tidemill.engine.protocol import Engine
from tidemill.model.stats.series import StatsPoint, total_of
from tidemill.model.time import HOUR, MINUTE, SECOND, Instant
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    claimant,
    clock,
    connect,
    engine,
    some_jobs,
)

__all__ = ["claimant", "clock", "connect", "engine"]

TERM = Trusted()


@pytest.fixture(params=SHARED)
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The place of one test."""
    yield from fresh_url(request.param, tmp_path, request)


async def points(engine: Engine, queue: str = "q") -> dict[Instant, StatsPoint]:
    """By the minute since the start."""
    found = await engine.inspect.stats(since=START, until=START + HOUR, step=MINUTE, queue=queue)
    return {(point.at - START) // MINUTE: point for series in found for point in series.points}


@pytest.mark.every_engine
async def test_arrivals_of_every_minute_add_up(
    connect: Connect, engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Two controllers, the one as often as the other."""
    ticks = [(engine, StatisticsTick(clock=clock)), (await connect(), StatisticsTick(clock=clock))]
    arrived = 0
    for minute in range(1, 6):
        clock.now = START + minute * MINUTE + minute * SECOND  # not always at the same second
        await claimant.heartbeat()
        await engine.jobs.enqueue(some_jobs(minute), now=clock.now)
        arrived += minute
        runs = await claimant.take(most=2)
        await claimant.complete(*runs[:1])
        await claimant.fail(*runs[1:])
        for one, tick in ticks:
            clock.forward(2)
            await tick.run(one, TERM)
        await engine.jobs.enqueue(some_jobs(10), now=clock.now)
        arrived += 10
    arrived -= 10  # of the last ones there is no sample yet
    found = await points(engine)
    sampled = [found[minute] for minute in range(5)]
    assert [point.arrived is None for point in sampled] == [True, False, False, False, False]
    assert (sampled[0].stock or 0) + (total_of(sampled).arrived or 0) == arrived
    assert found[5].stock is None
    assert await points(engine, "nothing") == {}


async def test_a_minute_without_a_controller_is_made_up_for(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    tick = StatisticsTick(clock=clock)
    clock.now = START + 2 * SECOND
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await tick.run(engine, TERM)
    clock.now = START + 7 * MINUTE + 40 * SECOND
    await claimant.heartbeat()
    await claimant.complete(*await claimant.take())
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2, queue="new"), now=clock.now)
    await tick.run(engine, TERM)
    found = (await points(engine))[6]
    assert (found.stock, found.arrived, found.oldest_ready) == (8, 5, 0)
    assert (await points(engine, "new"))[6].arrived == 2
    clock.now = START + HOUR
    await tick.run(engine, TERM)
    assert 59 not in await points(engine), "in the first moments of a minute the last one is not settled"
    clock.forward(2)
    await tick.run(engine, TERM)
    found = (await points(engine))[59]
    assert (found.stock, found.arrived) == (5, None)
    assert found.oldest_ready == 52 * MINUTE + 22 * SECOND


async def test_the_next_sample_is_due_when_the_next_minute_has_settled(engine: Engine, clock: Clock) -> None:
    tick, waits = StatisticsTick(clock=clock), []
    for second in (0, 1, 2, 3, 59):
        clock.now = START + second * SECOND
        waits.append(await tick.run(engine, TERM))
    assert waits == [2, 1, 60, 59, 3]
