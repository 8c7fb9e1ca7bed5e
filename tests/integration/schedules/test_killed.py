"""Controllers that die while they fire."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.integration.schedules.terms import Trusted
from tidemill.controller.ticks.schedules import ScheduleTick
from tidemill.engine.protocol import Engine
from tidemill.model.schedules.schedule import Cron, Schedule, tick_id
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import a_job

ROOT = Path(__file__).parents[3]
SCHEDULES, TICKS = 150, 10
FIRES = """
import asyncio, sys
from tidemill.controller.ticks.schedules import ScheduleTick
from tidemill.engine.registry import connect
from tests.integration.schedules.terms import Trusted

async def main():
    engine, tick = await connect(sys.argv[1]), ScheduleTick()
    while True:
        await tick.run(engine, Trusted())

asyncio.run(main())
"""


async def made(engine: Engine) -> int:
    return sum(each.ready for each in await engine.inspect.counts())


@pytest.mark.every_engine
@pytest.mark.row("D4", "B2")
async def test_one_job_per_tick_whenever_a_controller_is_killed(engine: Engine, engine_url: str) -> None:
    now = await engine.now()
    first = (now // SECOND - 60) * SECOND
    timing = Cron(fields="* * * * * *", end=first + (TICKS - 1) * SECOND)
    names = [f"s{number}" for number in range(SCHEDULES)]
    await engine.schedules.put(
        [
            Schedule(name=name, timing=timing, job=a_job(), missed="all", overlap="allow", next_at=first)
            for name in names
        ]
    )
    for quarter in (1, 2, 3):
        controller = await asyncio.create_subprocess_exec(sys.executable, "-c", FIRES, engine_url, cwd=ROOT)
        try:
            while await made(engine) < quarter * SCHEDULES * TICKS // 4:
                assert controller.returncode is None
        finally:
            controller.kill()  # in the middle of a firing, more often than not
            await controller.wait()
    assert 0 < await made(engine) <= SCHEDULES * TICKS
    tick = ScheduleTick()
    while any(each.next_at is not None for each in await engine.schedules.list()):
        await tick.run(engine, Trusted())
    assert await made(engine) == SCHEDULES * TICKS
    ids = [tick_id(name, first + number * SECOND) for name in names for number in range(TICKS)]
    for start in range(0, len(ids), 1_000):
        assert None not in await engine.inspect.get(ids[start : start + 1_000])
