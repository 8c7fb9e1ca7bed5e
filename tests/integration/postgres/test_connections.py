"""Connections break, servers die, answers are lost: calls say so, and go on by themselves."""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from tests.integration.outages import until_it_works
from tests.integration.postgres.conftest import Connect, Servers, behind
from tests.servers.proxy import Proxy
from tidemill.engines.postgres.db.connection import PostgresConnection
from tidemill.model.errors import EngineUnavailable
from tidemill.model.ids import new_id
from tidemill.model.member import MemberInfo
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, created, some_jobs

PATIENCE_S = 20.0


@pytest.mark.parametrize("direction", ["requests", "replies"])
async def test_a_black_hole_is_given_up(connect: Connect, url: str, proxy: Proxy, direction: str) -> None:
    engine = await connect(behind(url, proxy) + "?call_timeout=1&connect_timeout=1")
    await until_it_works(lambda: engine.jobs.enqueue([a_job()]))
    proxy.mute(direction)
    begin = time.monotonic()
    with pytest.raises(EngineUnavailable, match="did not answer in 1 s"):
        await engine.jobs.enqueue([a_job()])
    with pytest.raises(EngineUnavailable, match="no answer in time"):
        await engine.jobs.enqueue([a_job()])
    assert time.monotonic() - begin < 10
    proxy.mute(direction, on=False)
    assert created(await until_it_works(lambda: engine.jobs.enqueue([a_job()]))) == [True]


async def test_an_opening_into_a_black_hole_is_given_up(connect: Connect, url: str, proxy: Proxy) -> None:
    proxy.mute()
    with pytest.raises(EngineUnavailable, match="no answer in time"):
        await connect(behind(url, proxy) + "?connect_timeout=0.3")


@pytest.mark.row("B15")
async def test_connections_that_a_firewall_has_forgotten(
    connect: Connect, url: str, proxy: Proxy, clock: Clock
) -> None:
    """Nothing passes on the old ones, and nobody says so. New ones are in order."""
    engine = await connect(behind(url, proxy) + "?call_timeout=1")
    await until_it_works(lambda: engine.jobs.enqueue([a_job()], now=clock.now))
    await until_it_works(lambda: engine.inspect.counts(now=clock.now))
    proxy.forget_all()
    for call in (lambda: engine.jobs.enqueue([a_job()], now=clock.now), lambda: engine.inspect.counts()):
        with pytest.raises(EngineUnavailable, match="did not answer"):
            await call()
        await until_it_works(call)


async def test_a_host_that_does_not_answer_leaves_the_next_one_its_share(
    connect: Connect, url: str, proxy: Proxy
) -> None:
    """Of the time that a heartbeat has for its connect."""
    server = url.partition("127.0.0.1:")[2].partition("/")
    both = url.replace(f":{server[0]}/", f":{proxy.port},127.0.0.1:{server[0]}/")
    engine = await connect(both)
    info = MemberInfo(id=new_id(), name="host:1", heartbeat=SECOND // 2, lease=2 * SECOND)
    await engine.members.heartbeat(info)
    assert proxy.requests["heartbeats"] > 0, "the first of the two"
    proxy.mute("replies")
    proxy.cut_all()
    async with asyncio.timeout(5):
        assert not (await until_it_works(partial(engine.members.heartbeat, info))).new


@pytest.mark.row("B15")
async def test_a_server_that_drops_idle_connections(servers: Servers, connect: Connect, clock: Clock) -> None:
    """Calls after a rest are as good as others: no error, whatever kind they are."""
    server = servers(settings={"idle_session_timeout": "700ms"})
    engine = await connect(server.url())
    claimant = Claimant(engine, clock)

    async def a_round() -> None:
        await claimant.heartbeat()
        await engine.jobs.enqueue(some_jobs(2), now=clock.now)
        first, second = await claimant.take(most=2)
        await claimant.complete(first)
        await claimant.release(second)
        await engine.inspect.counts(now=clock.now)
        await engine.queues.pause("q", now=clock.now)
        await engine.queues.resume("q", now=clock.now)

    parts = [*engine.store.__dict__.values()]
    await a_round()
    for _ in range(2):
        async with asyncio.timeout(PATIENCE_S):
            while not all(each.is_closed() for each in open_connections(parts)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await a_round()
    assert "idle-session timeout" in server.log()


def open_connections(values: Iterable[object]) -> list[Any]:
    """The driver's connections of these, without the one that polls once a second."""
    connections = [
        each for each in values if isinstance(each, PostgresConnection) and each._purpose != "heartbeats"
    ]
    return [each._connection for each in connections if each._connection is not None]
