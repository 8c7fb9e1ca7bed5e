"""What apps declare of queues, and no more: on real engines, with a clock moved by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.schedules.terms import Trusted
from tidemill.controller.ticks.declarations import DeclarationTick
from tidemill.engine.protocol import Engine
from tidemill.model.member import MemberInfo
from tidemill.model.queues.layers import Declaration
from tidemill.model.schedules.schedule import PROGRAM
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import START, Clock, clock, connect, engine

__all__ = ["clock", "connect", "engine"]

TERM = Trusted()


@pytest.fixture(params=SHARED)
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The place of one test."""
    yield from fresh_url(request.param, tmp_path, request)


def a_member(number: int, *declares: str, app: str = "shop:app", loaded: bool = True) -> MemberInfo:
    return MemberInfo(
        id=bytes([number]) * 16,
        name=f"host:{number}",
        slots=1,
        app=app,
        declares=tuple(declares) if loaded else None,
    )


@pytest.mark.row("F17")
async def test_a_declaration_that_no_live_worker_makes_is_retired(engine: Engine, clock: Clock) -> None:
    tick = DeclarationTick(clock=clock, grace=5 * SECOND)
    limited = Declaration(fields={"concurrency": 5}, declared_at=START)
    await engine.queues.declare("shop:app", {"gone": limited, "email": limited}, now=clock.now)
    await engine.queues.declare("bill:app", {"gone": limited}, now=clock.now)
    await engine.queues.declare(PROGRAM, {"gone": limited}, now=clock.now)
    await engine.queues.override("gone", {"fair_by": "key"}, by="ann", now=clock.now)

    async def declarers(*members: MemberInfo) -> list[str]:
        """Who declares the queue after these have been the only ones for a while."""
        for _ in range(4):
            for member in members:
                await engine.members.heartbeat(member, now=clock.now)
            await tick.run(engine, TERM)
            clock.forward(2)
        for member in members:
            await engine.members.leave(member.id, now=clock.now)
        (queue,) = [each for each in await engine.queues.list() if each.name == "gone"]
        return sorted(queue.declared)

    everybody = sorted([PROGRAM, "bill:app", "shop:app"])
    old, new = a_member(1, "gone", "email"), a_member(2, "email")
    assert await declarers() == everybody  # nobody is there: nothing can be said
    assert await declarers(old, new) == everybody  # in the middle of a deploy it goes on
    assert await declarers(new, a_member(3, loaded=False)) == everybody  # one has not loaded its code yet
    assert await declarers(a_member(4, app=PROGRAM)) == everybody  # another program without a name
    assert await declarers(new, a_member(5, "gone", app="bill:app")) == sorted([PROGRAM, "bill:app"])
    (queue,) = [each for each in await engine.queues.list() if each.name == "gone"]
    assert (queue.options.concurrency, list(queue.overrides)) == (5, ["fair_by"])
    newest = (await engine.inspect.audit())[0]
    assert (newest.by, newest.action, newest.target) == ("controller", "retire declaration", "gone")
    assert "shop:app" in newest.detail


async def test_a_declaration_that_is_made_again_counts_from_then_on(engine: Engine, clock: Clock) -> None:
    tick = DeclarationTick(clock=clock, grace=5 * SECOND)
    for moment in range(4):
        said = Declaration(fields={"concurrency": 5}, declared_at=START + moment)
        await engine.queues.declare("shop:app", {"q": said}, now=clock.now)
        await engine.members.heartbeat(a_member(1), now=clock.now)
        await tick.run(engine, TERM)
        clock.forward(4)
    (queue,) = await engine.queues.list()
    assert list(queue.declared) == ["shop:app"]
