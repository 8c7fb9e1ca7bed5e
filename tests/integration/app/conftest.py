"""An app on every engine that an app can be given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Penstock


@pytest.fixture(params=["sqlite-file", "sqlite-memory"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(engine_mode: str, tmp_path: Path) -> str:
    return "sqlite://" if engine_mode == "sqlite-memory" else f"sqlite:///{tmp_path}/app.db?durability=normal"


@pytest.fixture
def app(url: str) -> Iterator[Penstock]:
    """An app without tasks."""
    made = Penstock(url)
    yield made
    made.close()
