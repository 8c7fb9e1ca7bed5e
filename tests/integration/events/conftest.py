"""Engines that emit events, their publishes counted, and apps to listen with."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.supervisor.conftest import StartGroup, start_groups
from tidemill import Tidemill
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.instrumentation import EngineCall, instrument
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
def group(url: str, tmp_path: Path) -> Iterator[StartGroup]:
    """Starts worker groups."""
    yield from start_groups(url, tmp_path)


@pytest.fixture
async def app(url: str) -> AsyncIterator[Tidemill]:
    made = Tidemill(url)
    yield made
    await made.aclose()


class Process:
    """A process that makes changes, as far as its engine is concerned: what it asks is counted."""

    def __init__(self, engine: Engine) -> None:
        self.calls: Counter[str] = Counter()
        self._emitting = EmittingEngine(instrument(engine, self._note))

    @property
    def engine(self) -> EmittingEngine:
        return self._emitting

    def _note(self, call: EngineCall) -> None:
        self.calls[f"{call.facet}.{call.method}"] += 1


Open = Callable[..., Awaitable[Process]]


@pytest.fixture
async def open_process(url: str) -> AsyncIterator[Open]:
    """Opens engines that emit; `around` may put something between the emitter and the engine."""
    opened: list[Process] = []

    async def open_one(around: Callable[[Engine], Engine] = lambda engine: engine) -> Process:
        opened.append(Process(around(await connect(url))))
        return opened[-1]

    yield open_one
    for one in opened:
        await one.engine.close()
