"""Servers that answer, but not as hoped: a replica, one that is loading, one that does not allow it."""

import asyncio
from functools import partial

import pytest
from redis._parsers.base import BaseParser

from tests.integration.outages import until_it_works
from tests.integration.redis.conftest import Connect, behind
from tests.integration.redis.test_connections import PATIENCE_S
from tests.servers.proxy import Proxy
from tests.servers.redis import RedisServer
from tests.servers.redis_urls import RedisUrls
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.redis.db.errors import translate
from tidemill.engines.redis.url import parse_url
from tidemill.model.errors import BadUrl, EngineFull, EngineUnavailable
from tidemill.model.event import ANY_TOPIC, Signal
from tidemill.testing.contract.fixtures import Clock, a_job


async def test_a_primary_that_became_a_replica_is_left(
    own_server: RedisServer, redis_urls: RedisUrls, connect: Connect, url: str, proxy: Proxy, clock: Clock
) -> None:
    """After a failover the address leads to another server, while the old one still answers."""
    proxy.retarget(own_server.port)
    engine = await connect(behind(url, proxy))
    inbox = await engine.signals.subscribe("news")
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await engine.inspect.counts(now=clock.now)
    own_server.command("REPLICAOF", "127.0.0.1", "1")
    proxy.retarget(redis_urls.server.port)
    await (await open_engine(url)).close()
    with pytest.raises(EngineUnavailable, match="can only be read"):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    await until_it_works(partial(engine.jobs.enqueue, [a_job(queue="there")], now=clock.now))
    assert [each.queue for each in await engine.inspect.counts(now=clock.now)] == ["there"]
    assert await inbox.next(PATIENCE_S) == Signal(ANY_TOPIC)
    other = await connect(url)
    async with asyncio.timeout(PATIENCE_S):
        await other.signals.publish("news", "from there")
        assert await inbox.next() == Signal("news", "from there")


async def test_a_user_without_rights_is_told_at_open(own_server: RedisServer) -> None:
    own_server.command("ACL", "SETUSER", "guest", "on", ">word", "+@connection", "~*", "&*")
    with pytest.raises(BadUrl, match="ACL"):
        await open_engine(own_server.url(user="guest:word@"))


@pytest.mark.parametrize(
    ("said", "kind", "shown"),
    [
        ("READONLY You can't write against a read only replica.", EngineUnavailable, "only be read"),
        ("ERR Error running script: -READONLY You can't write", EngineUnavailable, "only be read"),
        ("LOADING Redis is loading the dataset in memory", EngineUnavailable, "loading"),
        ("MASTERDOWN Link with MASTER is down", EngineUnavailable, "primary is down"),
        ("CLUSTERDOWN The cluster is down", EngineUnavailable, "cluster is down"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", EngineUnavailable, "rearranged"),
        ("MOVED 3999 127.0.0.1:6381", EngineUnavailable, "another server"),
        ("NOPERM this user has no permissions", EngineUnavailable, "ACL"),
        ("MISCONF Redis is configured to save snapshots", EngineUnavailable, "MISCONF"),
        ("OOM command not allowed when used memory > 'maxmemory'", EngineFull, "memory"),
        ("ERR Error running script: -OOM command not allowed", EngineFull, "memory"),
    ],
)
def test_what_a_server_says_is_known_as_the_driver_tells_it(
    said: str, kind: type[Exception], shown: str
) -> None:
    """The driver takes the code of an error that it knows off its text."""
    error = translate(BaseParser.parse_error(said), parse_url("redis://h/0", "shop"))  # type: ignore[no-untyped-call]
    assert type(error) is kind
    assert shown in str(error)
