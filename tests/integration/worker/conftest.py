"""One worker in this process, on every engine of the project."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.worker.workplace import Workplace
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def engine_url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
async def engine(engine_url: str) -> AsyncIterator[Engine]:
    engine = await connect(engine_url)
    yield engine
    await engine.close()


@pytest.fixture
async def workplace(engine: Engine) -> AsyncIterator[Workplace]:
    workplace = Workplace(engine)
    yield workplace
    await workplace.close()
