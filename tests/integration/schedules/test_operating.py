"""What people do with schedules, on real engines."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidemill.app.operating import schedule_actions
from tidemill.engine.protocol import Engine
from tidemill.model.errors import Refused
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.schedules.schedule import Cron, Every, Schedule
from tidemill.model.time import HOUR, MINUTE
from tidemill.testing.contract.fixtures import Connect, a_job


@pytest.mark.row("D4")
async def test_a_schedule_whose_end_came_in_its_pause_fires_no_more(engine: Engine) -> None:
    now = await engine.now()
    timing = Cron(fields="* * * * *", end=now - MINUTE)
    schedule = Schedule(name="s", timing=timing, job=a_job(), next_at=now - HOUR)
    await engine.schedules.put([schedule])
    await schedule_actions.pause(engine, "s")
    await schedule_actions.resume(engine, "s")
    (stored,) = await engine.schedules.list()
    assert (stored.paused, stored.next_at) == (False, None)


@pytest.mark.every_engine
@pytest.mark.row("D4")
@pytest.mark.parametrize("timing", [Every(seconds=60), Cron(fields="0 3 * * *")])
async def test_of_two_who_ask_for_a_run_at_once_one_is_refused(
    connect: Connect, timing: Every | Cron
) -> None:
    clients = [await connect() for _ in range(2)]
    for name in ("a", "b", "c"):
        schedule = Schedule(name=name, timing=timing, job=msgspec.structs.replace(a_job(), id=bytes(16)))
        await clients[0].schedules.put([schedule])
        asked = await asyncio.gather(
            *(schedule_actions.run_now(client, name) for client in clients), return_exceptions=True
        )
        assert sum(isinstance(each, Refused) for each in asked) == 1
        assert sum(isinstance(each, bytes) for each in asked) == 1


class DroppedBefore:
    """A `schedules` facet: just before the first firing somebody drops a job."""

    def __init__(self, engine: Engine, job: JobId) -> None:
        self._engine = engine
        self.to_drop = [job]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine.schedules, name)

    async def fire(self, *arguments: Any, **options: Any) -> Any:
        while self.to_drop:
            job = self.to_drop.pop()
            assert await self._engine.jobs.cancel([job]) == ["cancelled"]
            assert await self._engine.jobs.drop([job]) == ["dropped"]
        return await self._engine.schedules.fire(*arguments, **options)


class DroppingEngine:
    """An engine with such a facet."""

    def __init__(self, engine: Engine, job: JobId) -> None:
        self._engine = engine
        self.schedules = DroppedBefore(engine, job)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_a_run_whose_line_is_dropped_in_that_moment_is_made(engine: Engine) -> None:
    template = msgspec.structs.replace(a_job(), id=bytes(16))
    schedule = Schedule(name="s", timing=Cron(fields="0 3 * * *"), job=template, overlap="queue")
    await engine.schedules.put([schedule])
    first = await schedule_actions.run_now(engine, "s")
    dropping: Any = DroppingEngine(engine, first)
    second = await schedule_actions.run_now(dropping, "s")
    assert dropping.schedules.to_drop == []
    gone, made = await engine.inspect.get([first, second])
    assert gone is None
    assert made is not None
    assert made.state is JobState.READY, "there is nobody left to wait for"
