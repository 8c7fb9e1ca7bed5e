"""The end of an iteration over events, at awkward moments."""

import asyncio
import gc
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.integration.events.reading import new_jobs, read, read_until
from tidemill import Events, Tidemill
from tidemill.app.reading.events import EventListener
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.event import Gap
from tidemill.model.event_batch import Piece
from tidemill.model.ids import new_id

PATIENCE_S = 10
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def url() -> str:
    return f"sqlite://?name={new_id().hex()}"


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    engine = await connect(url)
    yield engine
    await engine.close()


@pytest.fixture
def app(url: str) -> Iterator[Tidemill]:
    app = Tidemill(url)
    yield app
    app.close()


def begun(events: Events) -> Events:
    """Announced; not yet seen by everybody."""
    events._begun()
    return events


def received(events: Events, count: int) -> None:
    """So much waits for the reader."""
    assert events._listener is not None
    events._listener.backlog.put([Gap("lost", number) for number in range(count)])


def test_what_was_not_read_is_dropped(app: Tidemill) -> None:
    events = begun(app.events())
    received(events, 2)
    assert next(events) == Gap("lost", 0)
    received(events, 2)
    events.close()
    received(events, 2)
    assert list(events) == []


def test_closing_between_two_steps_of_the_reader_ends_his_iteration(app: Tidemill) -> None:
    """As another thread may: after he saw that there is something, before he has it."""
    events = begun(app.events())
    received(events, 2)

    class Closed(deque[Any]):
        def popleft(self) -> Any:
            closing = threading.Thread(target=events.close)
            closing.start()
            closing.join(PATIENCE_S)
            return super().popleft()

    events._taken = Closed()
    assert list(events) == []


async def nobody_listens(engine: Engine) -> None:
    """Soon; a listener that was forgotten would hold its lease for ever."""
    async with asyncio.timeout(PATIENCE_S):
        while await engine.leases.list():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_closing_while_it_begins_leaves_no_listener(
    app: Tidemill, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, start = app.events(), EventListener.start

    async def closed_meanwhile(*args: Any) -> EventListener:
        listener = await start(*args)
        events.close()
        return listener

    monkeypatch.setattr(EventListener, "start", closed_meanwhile)
    assert await asyncio.to_thread(list, events) == []
    await nobody_listens(engine)


@pytest.mark.row("C2")
async def test_an_interrupted_beginning_leaves_no_listener_and_never_two(
    app: Tidemill, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener had begun when Ctrl-C came, and the reader has not seen it."""
    events, wait = app.events(), app._link.wait

    def interrupted(*args: Any) -> Any:
        wait(*args)
        raise KeyboardInterrupt

    def try_it(events: Events) -> None:
        with pytest.raises(KeyboardInterrupt):
            next(events)

    monkeypatch.setattr(app._link, "wait", interrupted)
    await asyncio.to_thread(try_it, events)
    assert len(await engine.leases.list()) == 1
    monkeypatch.undo()
    await asyncio.to_thread(begun, events)
    assert len(await engine.leases.list()) == 1
    del events
    gc.collect()
    await nobody_listens(engine)


@pytest.mark.row("C2")
async def test_a_fault_while_emitting_is_a_gap(
    app: Tidemill, engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    process = EmittingEngine(engine)
    async with app.events() as events:
        await process.jobs.enqueue(new_jobs(1))
        await read(events, 1)

        async def fail(*_: object) -> list[Piece]:
            monkeypatch.undo()
            raise ValueError("a fault")

        monkeypatch.setattr(process.emitter._detail, "pieces", fail)
        await process.jobs.enqueue(new_jobs(3))
        assert await read_until(events, bool) == [Gap("lost", 3)], "found without a further change"
        await process.jobs.enqueue(new_jobs(1))
        await read(events, 1)
    await process.emitter.close()
    assert process.emitter.lost == 3
    [record] = caplog.records
    assert record.exc_info
