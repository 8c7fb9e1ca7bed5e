"""Who is there, as a program sees it."""

import asyncio
import os
import time
from collections.abc import Callable

import pytest

from tidemill import Health, Member, SyncInLoop, Tidemill
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.member import MemberInfo
from tidemill.model.time import HOUR
from tidemill.task.settings import Settings

PATIENCE_S = 30.0


async def seen(app: Tidemill, fact: Callable[[Member], object]) -> Member:
    """The one member, once this is true of it: it says so with its next heartbeat."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not ((found := await app.amembers()) and fact(found[0])):
        assert time.monotonic() < give_up_at, found
        await asyncio.sleep(0.02)
    (member,) = found
    return member


@pytest.mark.every_engine
@pytest.mark.row("D3")
async def test_a_member_says_what_it_is_and_what_it_runs(url: str) -> None:
    app, go = Tidemill(settings=Settings.load(url=url, heartbeat="0.1s", lease="1s")), asyncio.Event()
    app.queue("mail")

    @app.task(queue="mail")
    async def waits() -> None:
        await go.wait()

    async with app.worker(slots=3):
        job = await waits.aenqueue()
        member = await seen(app, lambda one: one.processes and one.processes[0].running and one.controller)
        assert (member.pid, member.slots, member.queues) == (os.getpid(), 3, ("default", "mail"))
        assert member.tasks == (waits.name,)
        assert member.name == f"{member.host}:{member.pid}"
        assert member.roles == ("worker", "controller")
        assert member.health is Health.HEALTHY
        assert member.running == 1
        assert member.since <= member.heartbeat_at
        assert member.version
        (process,) = member.processes
        assert process.jobs == (job.id,)
        assert (process.pid, process.held) == (os.getpid(), 1)
        assert (process.memory or 0) > 1 << 20
        go.set()
        await job.aresult(PATIENCE_S)
        await seen(app, lambda one: not one.processes[0].held)
    assert await app.amembers() == []
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("D3")
async def test_members_are_healthy_late_or_gone(url: str) -> None:
    app = Tidemill(url)
    engine = await connect(app.url)
    for name, heartbeat, lease in (("a", HOUR, 3 * HOUR), ("b", 1, HOUR), ("c", 1, 3)):
        await engine.members.heartbeat(
            MemberInfo(id=new_id(), name=name, heartbeat=heartbeat, lease=lease, detail=b"[")
        )
    found = await app.amembers()
    assert [(one.name, one.health.value) for one in found] == [("a", "healthy"), ("b", "late"), ("c", "gone")]
    assert {(one.controller, one.memory, one.processes) for one in found} == {(False, None, ())}
    await engine.close()
    await app.aclose()


async def test_one_that_does_not_stand_is_never_the_controller(url: str) -> None:
    app = Tidemill(settings=Settings.load(url=url, heartbeat="0.1s", lease="1s"))
    engine = await connect(app.url)
    async with app.worker(queues=["default"], controller=False):
        member = await seen(app, lambda one: (one.heartbeat_at - one.since).total_seconds() > 0.5)
        assert (member.roles, member.controller) == (("worker",), False)
        assert await engine.leases.list() == []
    await engine.close()
    await app.aclose()


def test_the_blocking_form_is_for_code_without_a_loop(app: Tidemill) -> None:
    assert app.members() == []

    async def in_loop() -> None:
        with pytest.raises(SyncInLoop, match="amembers"):
            app.members()

    asyncio.run(in_loop())
