"""The engines of this project, for tests that need a place to work in and do not care which engine it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres_places import PostgresPlaces
from tests.servers.redis_places import RedisPlaces

SHARED = ("sqlite-file", "postgres-server", "redis-server")
"""Those that several processes can share."""


def fresh_place(mode: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty place in a mode; the body of a fixture."""
    if mode == "postgres-server":
        places: PostgresPlaces = request.getfixturevalue("postgres_places")
        yield places.fresh_kept()
        places.release()
    elif mode == "redis-server":
        redis: RedisPlaces = request.getfixturevalue("redis_places")
        yield redis.fresh()
        redis.release()
    elif mode == "sqlite-memory":
        yield "sqlite://"
    else:
        yield f"sqlite:///{folder}/tidemill.db?durability=normal"
