"""An engine of every kind that several processes can share, and a clock moved by hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tidemill.testing.contract.fixtures import claimant, clock, connect, engine

__all__ = ["claimant", "clock", "connect", "engine"]


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def engine_url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The place of one test."""
    yield from fresh_url(engine_mode, tmp_path, request)
