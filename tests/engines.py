"""The engines of this project, for tests that need a URL and do not care of which engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres_urls import PostgresUrls
from tests.servers.redis_urls import RedisUrls

SHARED = ("sqlite-file", "postgres-server", "redis-server")
"""Those that several processes can share."""


def fresh_url(mode: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store in a mode; the body of a fixture."""
    if mode == "postgres-server":
        urls: PostgresUrls = request.getfixturevalue("postgres_urls")
        yield urls.fresh_kept()
        urls.release()
    elif mode == "redis-server":
        redis: RedisUrls = request.getfixturevalue("redis_urls")
        yield redis.fresh()
        redis.release()
    elif mode == "sqlite-memory":
        yield "sqlite://"
    else:
        yield f"sqlite:///{folder}/tidemill.db?durability=normal"
