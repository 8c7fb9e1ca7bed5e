"""An app on a file or a server, and the user's own table in the same place."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import fresh_url
from tidemill import Tidemill


@pytest.fixture
def url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The app's place. `engine_mode` is a parameter of the tests: it goes with the kind of connection."""
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
def app(url: str) -> Iterator[Tidemill]:
    made = Tidemill(url)
    yield made
    made.close()
