"""Engines on the private Redis, and a clock."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from penstock.engine.registry import connect as open_engine
from penstock.engines.redis.engine import RedisEngine
from penstock.testing.contract.fixtures import Claimant, Clock, clock
from tests.integration.outages import Groups
from tests.integration.supervisor.conftest import StartGroup, start_groups
from tests.servers.fixtures import redis_or_skip
from tests.servers.proxy import REDIS, Proxy
from tests.servers.redis import RedisServer
from tests.servers.redis_places import RedisPlaces

__all__ = ["clock"]

Connect = Callable[..., Awaitable[RedisEngine]]
Command = Callable[..., bytes]
Servers = Callable[..., RedisServer]


@pytest.fixture(params=["redis-server"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """So that rows proven here count for this engine."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(redis_places: RedisPlaces, engine_mode: str) -> str:
    """An empty logical database."""
    return redis_places.fresh()


@pytest.fixture
def command(redis_places: RedisPlaces, url: str) -> Command:
    """A command of the test's own in that database."""
    database = int(urlsplit(url).path.removeprefix("/"))
    return lambda *parts: redis_places.server.command(*parts, database=database)


@pytest.fixture
async def connect(url: str) -> AsyncIterator[Connect]:
    """Opens engines; closed at the end."""
    opened: list[RedisEngine] = []

    async def one_more(place: str = url, **options: Any) -> RedisEngine:
        engine = await open_engine(place, **options)
        assert isinstance(engine, RedisEngine)
        opened.append(engine)
        return engine

    yield one_more
    for engine in reversed(opened):
        await engine.close()


@pytest.fixture
async def engine(connect: Connect) -> RedisEngine:
    return await connect()


@pytest.fixture
async def claimant(engine: RedisEngine, clock: Clock) -> Claimant:
    claimant = Claimant(engine, clock)
    await claimant.beat()
    return claimant


@pytest.fixture
async def proxy(redis_places: RedisPlaces) -> AsyncIterator[Proxy]:
    """Stands before the server."""
    standing = await Proxy(redis_places.server.port, REDIS).start()
    yield standing
    await standing.close()


@pytest.fixture
def servers(engine_mode: str) -> Iterator[Servers]:
    """Starts servers with settings of their own, for this test alone."""
    started: list[RedisServer] = []

    def start(**settings: str) -> RedisServer:
        given = {name.replace("_", "-"): value for name, value in settings.items()}
        started.append(redis_or_skip(settings=given))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def own_server(engine_mode: str, request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server that this test may kill; its settings may be given as a parameter."""
    server = redis_or_skip(settings=getattr(request, "param", None))
    yield server
    server.close()


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Groups]:
    """Starts worker groups at a place."""
    with ExitStack() as ending:

        def at(url: str) -> StartGroup:
            return ending.enter_context(contextmanager(start_groups)(url, tmp_path))

        yield at


def behind(url: str, proxy: Proxy) -> str:
    """The same place, reached through the proxy."""
    scheme, _, rest = url.partition("127.0.0.1:")
    return f"{scheme}127.0.0.1:{proxy.port}/{rest.partition('/')[2]}"
