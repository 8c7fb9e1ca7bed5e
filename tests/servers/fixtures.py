"""Servers for tests: one of each kind in every test process, started when the first test asks for it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers.postgres import NoServer, PostgresServer
from tests.servers.postgres_places import PostgresPlaces


@pytest.fixture(scope="session")
def postgres_places() -> Iterator[PostgresPlaces]:
    """A private PostgreSQL, and empty databases in it."""
    places = PostgresPlaces(server_or_skip())
    yield places
    places.close()


def server_or_skip(**options: Any) -> PostgresServer:
    """A started server; where none is installed a skip, in CI a failure."""
    try:
        return PostgresServer(**options).start()
    except NoServer as missing:
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            raise
        pytest.skip(str(missing))
