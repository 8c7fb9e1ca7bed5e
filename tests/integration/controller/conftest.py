"""Engines of one place, for controllers of this process."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def engine_url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
async def engines(engine_url: str) -> AsyncIterator[list[Engine]]:
    """Three that share one place."""
    opened = [await connect(engine_url) for _ in range(3)]
    yield opened
    for engine in opened:
        await engine.close()
