"""Statistics reach the engine from real worker processes, also those that end."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import QUEUE, TASKS, a_job, enqueue, finished
from tidemill.engine.protocol import Engine
from tidemill.model.stats.series import StatsPoint, total_of
from tidemill.model.time import HOUR


async def counted(engine: Engine, task: str) -> StatsPoint:
    now = await engine.now()
    found = await engine.inspect.stats(
        since=now - HOUR, until=now + 1, by="task", queue=QUEUE, task=TASKS + task
    )
    return total_of([point for series in found for point in series.points])


@pytest.mark.every_engine
async def test_every_job_is_counted_once(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    """By heartbeats while the group works, and the rest when it ends."""
    ids = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(50)])
    one = await group(processes=2).ready(2)
    await finished(engine, ids)
    point = await counted(engine, "quick")
    while point.run.count < 50:
        await asyncio.sleep(0.05)
        point = await counted(engine, "quick")
    ids = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(30)])
    await finished(engine, ids)
    assert await one.stop() == 0
    point = await counted(engine, "quick")
    assert (point.wait.count, point.run.count) == (80, 80)
