"""Engines on the private PostgreSQL, and a clock."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from penstock.engine.registry import connect as open_engine
from penstock.engines.postgres.engine import PostgresEngine
from penstock.testing.contract.fixtures import Claimant, Clock, clock
from tests.integration.supervisor.conftest import StartGroup, start_groups
from tests.servers.fixtures import server_or_skip
from tests.servers.postgres import PostgresServer
from tests.servers.postgres_places import PostgresPlaces
from tests.servers.proxy import Proxy

__all__ = ["clock"]

Connect = Callable[..., Awaitable[PostgresEngine]]
Servers = Callable[..., PostgresServer]
Plain = Callable[..., Awaitable["asyncpg.Connection[Any]"]]


@pytest.fixture(params=["postgres-server"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """So that rows proven here count for this engine."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(postgres_places: PostgresPlaces, engine_mode: str) -> Iterator[str]:
    """An empty database with our schema."""
    yield postgres_places.fresh()
    postgres_places.release()


@pytest.fixture
async def connect(url: str) -> AsyncIterator[Connect]:
    """Opens engines; closed at the end."""
    opened: list[PostgresEngine] = []

    async def one_more(place: str = url, **options: Any) -> PostgresEngine:
        engine = await open_engine(place, **options)
        assert isinstance(engine, PostgresEngine)
        opened.append(engine)
        return engine

    yield one_more
    for engine in reversed(opened):
        await engine.close()


@pytest.fixture
async def engine(connect: Connect) -> PostgresEngine:
    return await connect()


@pytest.fixture
async def claimant(engine: PostgresEngine, clock: Clock) -> Claimant:
    claimant = Claimant(engine, clock)
    await claimant.beat()
    return claimant


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
async def proxy(postgres_places: PostgresPlaces) -> AsyncIterator[Proxy]:
    """Stands before the server."""
    standing = await Proxy(postgres_places.server.port).start()
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
def groups(tmp_path: Path) -> Iterator[Callable[[str], StartGroup]]:
    """Starts worker groups at a place."""
    with ExitStack() as ending:

        def at(url: str) -> StartGroup:
            return ending.enter_context(contextmanager(start_groups)(url, tmp_path))

        yield at


def behind(url: str, proxy: Proxy) -> str:
    """The same place, reached through the proxy."""
    scheme, _, rest = url.partition("127.0.0.1:")
    return f"{scheme}127.0.0.1:{proxy.port}/{rest.partition('/')[2]}"
