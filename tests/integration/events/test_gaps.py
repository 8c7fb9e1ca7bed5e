"""What is missing is said to be missing, and emitting costs the change nothing, whatever happens to it."""

import asyncio
import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import pytest

from tests.integration.events.conftest import Open, Process
from tests.integration.events.reading import PATIENCE_S, new_jobs, read, read_until, take
from tests.integration.supervisor.processes import until
from tidemill import Event, Gap, Tidemill
from tidemill.app.reading.backlog import BACKLOG_LIMIT
from tidemill.engine.events import emitter, receiver
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineUnavailable
from tidemill.model.event import EVENTS_TOPIC
from tidemill.model.event_batch import unpack
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import Completed, Settlement


class LossySignals:
    """Signals of which some are lost: each publish of events asks `fate` first."""

    def __init__(self, signals: Any) -> None:
        self._signals = signals
        self.fate = "arrives"
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._signals, name)

    async def publish(self, topic: str, text: str = "") -> None:
        if self.fate == "arrives":
            await self._signals.publish(topic, text)
            return
        batch = unpack(text)
        assert batch is not None
        self.lost += batch.count
        if self.fate == "fails":
            raise EngineUnavailable("gone")


class LossyEngine:
    """An engine with such signals."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.signals = LossySignals(engine.signals)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def a_lossy(open_process: Open) -> tuple[Process, LossySignals]:
    made: list[LossyEngine] = []

    def around(engine: Engine) -> Any:
        made.append(LossyEngine(engine))
        return made[-1]

    return await open_process(around), made[0].signals


async def lose(process: Process, signals: LossySignals, fate: str, count: int) -> None:
    """Make that many changes that nobody receives."""
    signals.fate, signals.lost = fate, 0
    await process.engine.jobs.enqueue(new_jobs(count))
    await until(lambda: signals.lost == count)
    signals.fate = "arrives"


@pytest.mark.every_engine(1)
@pytest.mark.row("C2")
@pytest.mark.parametrize("fate", ["vanishes", "fails"])
async def test_lost_events_are_a_gap_of_their_number(
    app: Tidemill, open_process: Open, fate: str, caplog: pytest.LogCaptureFixture
) -> None:
    process, signals = await a_lossy(open_process)
    async with app.events() as events:
        await process.engine.jobs.enqueue(new_jobs(1))
        await read(events, 1)
        await lose(process, signals, fate, 3)
        await process.engine.jobs.enqueue(new_jobs(1))
        gap, event = await read_until(events, lambda found: len(found) == 2)
        assert gap == Gap("lost", 3)
        assert isinstance(event, Event)
        await lose(process, signals, fate, 2)
        assert await read_until(events, bool) == [Gap("lost", 2)], "found without a further change"
    assert process.engine.emitter.lost == (5 if fate == "fails" else 0)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == (1 if fate == "fails" else 0), "said once is enough"


@pytest.mark.row("C2")
async def test_more_than_a_step_names_is_a_gap_of_their_number(
    app: Tidemill, open_process: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await open_process()
    name = process.engine.jobs._jobs.promote

    async def promote(*, moves: Moves, **options: Any) -> Any:
        named = Moves()
        promoted = await name(moves=named, **options)
        moves.take(named)
        moves.missed += 7  # as if there had been no room for them
        return promoted

    monkeypatch.setattr(process.engine.jobs._jobs, "promote", promote)
    async with app.events() as events:
        await process.engine.jobs.enqueue(new_jobs(1, delay=1))
        await process.engine.jobs.promote()
        first, second, gap = await read_until(events, lambda found: len(found) == 3)
    assert [getattr(one, "state", None) for one in (first, second)] == ["scheduled", "ready"]
    assert gap == Gap("lost", 7)


@pytest.mark.row("C2")
async def test_a_reader_who_falls_behind_gets_a_gap(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    async with app.events() as events:
        total, slow = BACKLOG_LIMIT + 2_000, 0
        for _ in range(total // 1_000):
            await process.engine.jobs.enqueue(new_jobs(1_000))
        listener = events._listener
        assert listener is not None
        await until(lambda: listener.backlog._missed)  # nobody reads until there is no room any more
        await process.engine.jobs.enqueue(new_jobs(1, queue="end"))
        accounted = 0
        async with asyncio.timeout(PATIENCE_S):
            while accounted < total + 1:
                one = await anext(events)
                accounted += 1 if isinstance(one, Event) else one.missed or 0
                slow += isinstance(one, Gap) and one.why == "slow"
    assert accounted == total + 1, "each was either read or counted"
    assert slow


@pytest.mark.row("C2")
async def test_where_nobody_listens_nothing_is_published(open_process: Open) -> None:
    process = await open_process()
    began = time.monotonic()
    for number in range(1, 51):
        await process.engine.jobs.enqueue(new_jobs(10))
        runs = await take(process, number)
        settlements = [Settlement(id=run.id, fence=run.fence, outcome=Completed()) for run in runs]
        await process.engine.jobs.settle(settlements)
    polls = 1 + (time.monotonic() - began) / emitter.POLL_S
    assert process.calls["jobs.settle"] == 50
    assert process.calls["signals.publish"] == 0
    assert 1 <= process.calls["leases.list"] <= polls
    extra = Counter(process.calls) - Counter({"jobs.enqueue": 50, "jobs.claim": 50, "jobs.settle": 50})
    assert set(extra) == {"leases.list", "members.heartbeat"}, "nothing else is asked for events"


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_a_listener_that_is_killed_is_forgotten(url: str, open_process: Open) -> None:
    process = await open_process()
    await process.engine.now()
    command = (sys.executable, "-m", "tidemill", "events", "--url", url)
    listener = await asyncio.to_thread(_start, command)
    await process.engine.jobs.enqueue(new_jobs(1))
    assert listener.stdout is not None
    assert "ready" in await asyncio.to_thread(listener.stdout.readline)
    listener.send_signal(signal.SIGKILL)
    killed_at = time.monotonic()
    await asyncio.to_thread(listener.communicate)
    # it polls by itself, as long as it believes in somebody
    await until(lambda: process.engine.emitter._task is None)
    bound = receiver.LEASE_S + emitter.MARK_S + emitter.POLL_S
    assert time.monotonic() - killed_at < bound + 5, "a generous ceiling"
    published = process.calls["signals.publish"]
    assert published >= 1
    await until(lambda: process.engine.emitter.wanted)  # it is time to poll again
    polls = process.calls["leases.list"]
    await process.engine.jobs.enqueue(new_jobs(1))
    await until(lambda: process.calls["leases.list"] > polls and process.engine.emitter._task is None)
    assert process.calls["signals.publish"] == published


def _start(command: tuple[str, ...]) -> "subprocess.Popen[str]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "listening" in process.stderr.readline()
    return process


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_a_listener_that_receives_nothing_notices_it(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receiver, "ANNOUNCE_S", 0.05)
    monkeypatch.setattr(receiver, "DEAF_S", 0.3)
    bare = await connect(url)
    engine: Any = LossyEngine(bare)
    found: list[Any] = []
    listener = receiver.EventReceiver(engine, found.append)
    await listener.open()
    running = asyncio.create_task(listener.run())
    began = time.monotonic()
    await until(lambda: listener._echoed_at - began > 3 * receiver.DEAF_S)
    assert found == [], "its own echo arrives"
    engine.signals.fate = "vanishes"
    await until(lambda: found)
    assert (found, len(caplog.records)) == ([Gap("unheard")], 1)
    assert "listen=host:port" in caplog.text
    running.cancel()
    await asyncio.wait({running})
    await bare.close()


async def test_nonsense_on_the_topic_is_a_gap(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    async with app.events() as events:
        await process.engine.signals.publish(EVENTS_TOPIC, "half a bat")
        assert await read_until(events, bool) == [Gap("lost")]


@pytest.mark.row("C2")
async def test_an_announcement_that_ran_out_is_a_gap(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    async with app.events() as events:
        [lease] = await process.engine.leases.list()
        assert lease.name.startswith(emitter.ANNOUNCED)
        await process.engine.leases.release(lease.name, fence=lease.fence)
        assert await read_until(events, bool) == [Gap("unheard")]
        [again] = await process.engine.leases.list()
        assert again.fence > lease.fence
    assert await process.engine.leases.list() == []
