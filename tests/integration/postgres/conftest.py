"""Engines on the private PostgreSQL, and a clock."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import pytest

from tests.integration.any_server.fixtures import (
    Sever,
    behind,
    claimant,
    clock,
    groups,
    opening,
    proxied_url,
)
from tests.servers.fixtures import server_or_skip
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_urls import PostgresUrls
from tests.servers.proxy import Proxy
from tidemill.engines.postgres.engine import PostgresEngine

__all__ = ["behind", "claimant", "clock", "groups", "proxied_url"]

OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tidemill %'"

Connect = Callable[..., Awaitable[PostgresEngine]]
Servers = Callable[..., PostgresServer]
Plain = Callable[..., Awaitable["asyncpg.Connection[Any]"]]


@pytest.fixture(params=["postgres-server"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """So that rows proven here count for this engine."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(postgres_urls: PostgresUrls, engine_mode: str) -> Iterator[str]:
    """An empty database with our schema."""
    yield postgres_urls.fresh()
    postgres_urls.release()


@pytest.fixture
async def connect(url: str) -> AsyncIterator[Connect]:
    """Opens engines; closed at the end."""
    async with opening(url, PostgresEngine) as one_more:
        yield one_more


@pytest.fixture
async def engine(connect: Connect) -> PostgresEngine:
    return await connect()


@pytest.fixture
async def plain(url: str) -> AsyncIterator[Plain]:
    """Opens plain connections; closed at the end."""
    opened: list[asyncpg.Connection[Any]] = []

    async def one_more() -> "asyncpg.Connection[Any]":
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
        opened.append(connection)
        return connection

    yield one_more
    for connection in opened:
        connection.terminate()


@pytest.fixture
async def proxy(postgres_urls: PostgresUrls) -> AsyncIterator[Proxy]:
    """Stands before the server."""
    standing = await Proxy(postgres_urls.server.port).start()
    yield standing
    await standing.close()


@pytest.fixture
def servers(engine_mode: str) -> Iterator[Servers]:
    """Starts servers with settings of their own, for this test alone."""
    started: list[PostgresServer] = []

    def start(**options: Any) -> PostgresServer:
        started.append(server_or_skip(**options))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def own_server(servers: Servers) -> PostgresServer:
    """A server that this test may kill."""
    return servers()


@pytest.fixture
def durable_server(own_server: PostgresServer) -> PostgresServer:
    return own_server


@pytest.fixture
async def sever(plain: Plain) -> Sever:
    other = await plain()
    return lambda share: other.fetch(f"SELECT pg_terminate_backend(pid) {OURS} AND random() < $1", share)
