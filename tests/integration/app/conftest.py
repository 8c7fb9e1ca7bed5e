"""An app on every engine that an app can be given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tidemill import Tidemill


@pytest.fixture(params=[*SHARED, "sqlite-memory"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
def app(url: str) -> Iterator[Tidemill]:
    """An app without tasks."""
    made = Tidemill(url)
    yield made
    made.close()
