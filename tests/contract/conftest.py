"""The contract suite on every engine of this project, in every mode."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.servers.postgres_urls import PostgresUrls, PostgresUser
from tests.servers.redis_urls import RedisUrls
from tidemill.engine.protocol import Engine
from tidemill.testing.contract.fixtures import (
    Connect,
    UserConnection,
    claimant,
    clients,
    clock,
    connection,
    engine,
    transactions,
)

__all__ = ["claimant", "clock", "connection", "engine", "transactions"]

MODES = ("sqlite-file", "sqlite-memory", "postgres-server", "redis-server")


@pytest.fixture(params=MODES)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs."""
    mode: str = request.param
    return mode


@pytest.fixture
def fresh_engine_url(
    engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[], str]]:
    """Gives the URL of a new, empty database in that mode each time."""
    if engine_mode == "postgres-server":
        urls: PostgresUrls = request.getfixturevalue("postgres_urls")
        yield urls.fresh_kept
        urls.release()
        return
    if engine_mode == "redis-server":
        redis: RedisUrls = request.getfixturevalue("redis_urls")
        yield redis.fresh
        redis.release()
        return
    names = (f"tidemill-{number}" for number in count())
    if engine_mode == "sqlite-memory":
        yield lambda: f"sqlite://?name={uuid4().hex}"
    else:
        yield lambda: f"sqlite:///{tmp_path}/{next(names)}.db?durability=normal"


@pytest.fixture
def engine_url(fresh_engine_url: Callable[[], str]) -> str:
    """The URL of one test."""
    return fresh_engine_url()


@pytest.fixture
async def connect(engine_mode: str, engine_url: str) -> AsyncIterator[Connect]:
    """A factory of clients. Engines of one process share a file's connections, unless their options differ:
    here each client has its own, as another process would."""
    timeouts = count(30)

    def next_url() -> str:
        return f"{engine_url}&lock_timeout={next(timeouts)}" if engine_mode == "sqlite-file" else engine_url

    async for factory in clients(next_url):
        yield factory


@pytest.fixture
def user_connection(
    engine_mode: str, engine_url: str, engine: Engine, request: pytest.FixtureRequest
) -> Iterator[UserConnection | None]:
    """A plain connection to the engine's database, in a transaction of its own."""
    if engine_mode in ("sqlite-memory", "redis-server"):
        yield None
    elif engine_mode == "postgres-server":
        urls: PostgresUrls = request.getfixturevalue("postgres_urls")
        user = PostgresUser(urls.loop, engine_url)
        yield user
        user.close()
    else:
        connection = sqlite3.connect(urlsplit(engine_url).path, isolation_level=None)
        connection.execute("BEGIN")
        yield connection
        connection.close()
