"""Servers for tests: one of each kind in every test process, started when the first test asks for it."""

from collections.abc import Iterator

import pytest

from tests.servers.postgres import server_or_skip
from tests.servers.postgres_places import PostgresPlaces


@pytest.fixture(scope="session")
def postgres_places() -> Iterator[PostgresPlaces]:
    """A private PostgreSQL, and empty databases in it."""
    places = PostgresPlaces(server_or_skip())
    yield places
    places.close()
