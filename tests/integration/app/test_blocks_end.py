"""The end of `async with app:`, and its beginning, at awkward moments."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.app.claimer import Hand, with_hand
from tests.integration.app.test_loops import session_of
from tests.integration.supervisor.processes import until
from tidemill import Event, Events, Gap, Tidemill
from tidemill.app.enqueueing.producer import Producer
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineClosed
from tidemill.model.jobs.job import NewJob, Stored

PATIENCE_S = 10.0


@pytest.mark.every_engine
async def test_a_block_that_ends_does_not_break_the_wait_of_another_task(app: Tidemill) -> None:
    @app.task(name="t")
    def task() -> str:
        return "never run"

    async def settle(hand: Hand) -> None:
        [run] = await hand.take()
        await hand.settle(run)

    async with app:
        session = await session_of(app)
        job = await task.aenqueue()
        asking = asyncio.create_task(job.aresult(30))
        await until(lambda: session._waiter is not None and session._waiter._waiting)
    assert not session.producer._closed, "it is in use"
    await with_hand(app, settle)
    assert await asking == "done"
    assert session.producer._closed, "the last one out"
    assert not app._link.loops._blocks


async def test_events_go_on_after_the_block_in_which_another_task_began_them(app: Tidemill) -> None:
    task = app.task(name="t")(lambda: None)
    begun, more = asyncio.Event(), asyncio.Event()

    async def never_inside() -> Event | Gap:
        async with app.events() as events:
            begun.set()
            await more.wait()
            return await anext(events)

    async with app:
        session = await session_of(app)
        reading = asyncio.create_task(never_inside())
        await begun.wait()
    assert not session.producer._closed, "it is in use"
    await task.aenqueue()
    more.set()
    event = await asyncio.wait_for(reading, 30)
    assert isinstance(event, Event)
    assert event.task == "t"
    assert session.producer._closed, "the last one out"


async def read_on(events: Events) -> None:
    async for _ in events:
        pass


async def test_events_by_the_engine_of_a_worker_do_not_just_end_with_it(app: Tidemill) -> None:
    async with app.worker():
        events = app.events()
        await events.__aenter__()
    with pytest.raises(EngineClosed, match="the worker whose engine"):
        await asyncio.wait_for(read_on(events), 30)


class Engines:
    """Counts the engines that the app opens and closes, and can hold up their opening."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = self.closed = 0
        self.may_open = asyncio.Event()
        self.may_open.set()

        async def opened(url: str, **options: Any) -> Engine:
            engine = await connect(url, **options)
            self.opened += 1
            close = engine.close

            async def closed() -> None:
                await close()
                self.closed += 1

            monkeypatch.setattr(engine, "close", closed)
            await self.may_open.wait()
            return engine

        monkeypatch.setattr("tidemill.app.access.link.connect", opened)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    return Engines(monkeypatch)


async def test_cancelling_the_end_of_a_block_neither_leaks_its_engine_nor_cancels_enqueues(
    app: Tidemill, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = app.task(name="t")(lambda n: n)
    sending, may_send = asyncio.Event(), asyncio.Event()
    send = Producer._repeated

    async def held_up(producer: Producer, jobs: Sequence[NewJob]) -> list[Stored]:
        sending.set()
        await may_send.wait()
        return await send(producer, jobs)

    monkeypatch.setattr(Producer, "_repeated", held_up)
    await app.__aenter__()
    other = asyncio.create_task(task.aenqueue(1))
    await sending.wait()
    leaving = asyncio.create_task(app.__aexit__(None, None, None))
    await until(lambda: not app._link.loops._blocks, PATIENCE_S)
    leaving.cancel()
    await asyncio.sleep(0)
    may_send.set()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert (await other).task == "t"
    assert (engines.opened, engines.closed) == (1, 1)


@pytest.mark.every_engine
@pytest.mark.parametrize("in_the_same_turn", [False, True])
async def test_cancelling_the_beginning_of_a_block_leaks_no_engine(
    app: Tidemill, engines: Engines, in_the_same_turn: bool
) -> None:
    engines.may_open.clear()
    entering = asyncio.create_task(app.__aenter__())
    await until(lambda: engines.opened == 1, PATIENCE_S)
    if in_the_same_turn:
        [block] = app._link.loops._blocks.values()
        assert block.session._opening is not None
        block.session._opening.add_done_callback(lambda _: entering.cancel())
    else:
        entering.cancel()
        await asyncio.sleep(0)
    engines.may_open.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert (engines.opened, engines.closed) == (1, 1)
    assert not app._link.loops._blocks
