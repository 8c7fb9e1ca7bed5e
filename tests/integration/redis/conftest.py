"""Engines on the private Redis, and a clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from urllib.parse import urlsplit

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
from tests.servers.fixtures import redis_or_skip
from tests.servers.proxy import REDIS, Proxy
from tests.servers.redis import RedisServer
from tests.servers.redis_urls import RedisUrls
from tidemill.engines.redis.engine import RedisEngine

__all__ = ["behind", "claimant", "clock", "groups", "proxied_url"]

Connect = Callable[..., Awaitable[RedisEngine]]
Command = Callable[..., bytes]
Servers = Callable[..., RedisServer]


@pytest.fixture(params=["redis-server"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """So that rows proven here count for this engine."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(redis_urls: RedisUrls, engine_mode: str) -> str:
    """An empty logical database."""
    return redis_urls.fresh()


@pytest.fixture
def command(redis_urls: RedisUrls, url: str) -> Command:
    """A command of the test's own in that database."""
    database = int(urlsplit(url).path.removeprefix("/"))
    return lambda *parts: redis_urls.server.command(*parts, database=database)


@pytest.fixture
async def connect(url: str) -> AsyncIterator[Connect]:
    """Opens engines; closed at the end."""
    async with opening(url, RedisEngine) as one_more:
        yield one_more


@pytest.fixture
async def engine(connect: Connect) -> RedisEngine:
    return await connect()


@pytest.fixture
async def proxy(redis_urls: RedisUrls) -> AsyncIterator[Proxy]:
    """Stands before the server."""
    standing = await Proxy(redis_urls.server.port, REDIS).start()
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
def durable_server(servers: Servers) -> RedisServer:
    """A server that this test may kill, and that loses nothing by it."""
    return servers(appendfsync="always")


@pytest.fixture
def sever(command: Command) -> Sever:
    """Ends every connection but those that listen: Redis knows no shares."""
    return lambda _: asyncio.to_thread(command, "CLIENT", "KILL", "TYPE", "normal")
