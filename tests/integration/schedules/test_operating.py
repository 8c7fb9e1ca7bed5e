"""What people do with schedules, on real engines."""

import asyncio

import msgspec
import pytest

from penstock.app import operating
from penstock.engine.protocol import Engine
from penstock.model.errors import Refused
from penstock.model.schedule import Cron, Every, Schedule
from penstock.model.time import HOUR, MINUTE
from penstock.testing.contract.fixtures import Connect, a_job


@pytest.mark.row("D4")
async def test_a_schedule_whose_end_came_in_its_pause_fires_no_more(engine: Engine) -> None:
    now = await engine.now()
    timing = Cron(fields="* * * * *", end=now - MINUTE)
    schedule = Schedule(name="s", timing=timing, job=a_job(), next_at=now - HOUR)
    await engine.schedules.put([schedule])
    await operating.pause(engine, "s")
    await operating.resume(engine, "s")
    (stored,) = await engine.schedules.list()
    assert (stored.paused, stored.next_at) == (False, None)


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
            *(operating.run_now(client, name) for client in clients), return_exceptions=True
        )
        assert sum(isinstance(each, Refused) for each in asked) == 1
        assert sum(isinstance(each, bytes) for each in asked) == 1
