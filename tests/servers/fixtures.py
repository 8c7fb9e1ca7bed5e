"""Servers for tests: one of each kind in every test process, started when the first test asks for it."""

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import NoServer, PostgresServer
from tests.servers.postgres_urls import PostgresUrls
from tests.servers.redis import RedisServer
from tests.servers.redis_urls import RedisUrls

T = TypeVar("T")


@pytest.fixture(scope="session")
def postgres_urls() -> Iterator[PostgresUrls]:
    """A private PostgreSQL, and empty databases in it."""
    urls = PostgresUrls(server_or_skip())
    yield urls
    urls.close()


@pytest.fixture(scope="session")
def pgbouncer(postgres_urls: PostgresUrls) -> Iterator[PgBouncer]:
    """A private PgBouncer in transaction mode before that server."""
    pooler = or_skip(lambda: PgBouncer(postgres_urls.server).start())
    yield pooler
    pooler.close()


def server_or_skip(*, start: bool = True, **options: Any) -> PostgresServer:
    """A server, started if need be; where none is installed a skip, in CI a failure."""
    return or_skip(lambda: PostgresServer(**options).start() if start else PostgresServer(**options))


def or_skip(start: Callable[[], T]) -> T:
    """What needs a program that may not be installed."""
    try:
        return start()
    except NoServer as missing:
        if os.environ.get("TIDEMILL_REQUIRE_ALL") == "1":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def redis_urls() -> Iterator[RedisUrls]:
    """A private Redis, and empty databases in it."""
    urls = RedisUrls(redis_or_skip())
    yield urls
    urls.close()


def redis_or_skip(**options: Any) -> RedisServer:
    """The same for Redis."""
    return or_skip(lambda: RedisServer(**options).start())
