"""Workers and a producer, each a program of its own, while their server fails or the way to it."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.outages import Business, Open, business, until_it_works
from tests.integration.redis.conftest import Command, Connect, Servers, behind
from tests.integration.supervisor.groups import counts_by_queue, finished, noted, states
from tests.integration.supervisor.processes import until
from tests.servers.proxy import Proxy
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.model.errors import EngineFull
from tidemill.model.ids import show_id
from tidemill.testing.contract.fixtures import a_job

__all__ = ["business"]

pytestmark = pytest.mark.row("A4", "D7")


@pytest.mark.parametrize("appendfsync", ["always", "no"])
async def test_a_server_killed_and_started_again_under_load(
    servers: Servers, connect: Connect, business: Open, appendfsync: str
) -> None:
    """What a killed Redis had handed to the system is not lost, synced or not: that takes a power cut. (With
    `everysec` it holds writes back while a sync is under way: the guide promises less there.)"""
    server = servers(appendfsync=appendfsync)
    shop = await business(server.url(), await connect(server.url()))
    for _ in range(2):
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await shop.goes_on()
    await shop.ends_well()


async def ends_after_lost_data(shop: Business, url: str, folder: Path, *, since: int) -> None:
    """Everything acknowledged after it has ended; nothing settled twice; nobody had to be started again."""
    await until(lambda: "the engine has lost data" in shop.group.log)
    ids = (await shop.producer.end())[since:]
    engine = await open_engine(url)
    jobs = await until_it_works(lambda: finished(engine, ids))
    assert states(jobs) == {"completed": len(ids)}
    ran = Counter(noted(folder, "quick"))
    assert {ran[show_id(job_id)] for job_id in ids} == {1}
    await until_it_works(shop.is_quiet)
    queue = (await counts_by_queue(engine))["default"]
    assert queue.completed == queue.window.completed, "each end is counted once"
    await engine.close()
    assert await shop.group.stop() == 0


async def test_a_server_that_keeps_nothing_is_restarted_under_load(
    servers: Servers, connect: Connect, business: Open, tmp_path: Path
) -> None:
    server = servers(appendonly="no", save="")
    shop = await business(server.url(), await connect(server.url()))
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    await shop.goes_on()
    since = len(shop.producer.acknowledged)
    await shop.goes_on()
    await ends_after_lost_data(shop, server.url(), tmp_path, since=since)


async def test_a_replica_that_lags_takes_over_under_load(
    servers: Servers, connect: Connect, proxy: Proxy, business: Open, tmp_path: Path
) -> None:
    primary, replica = servers(), servers()
    primary.copied_by(replica)
    proxy.retarget(primary.port)
    url = behind(primary.url(), proxy)
    shop = await business(url, await connect(url))
    replica.command("REPLICAOF", "NO", "ONE")  # cut off: from here on it lags
    await shop.goes_on()
    proxy.retarget(replica.port)
    await asyncio.to_thread(primary.kill)
    await shop.goes_on()
    since = len(shop.producer.acknowledged)
    await shop.goes_on()
    await ends_after_lost_data(shop, replica.url(), tmp_path, since=since)


async def test_what_replicas_had_to_have_survives_a_failover(
    servers: Servers, connect: Connect, proxy: Proxy, business: Open, tmp_path: Path
) -> None:
    """Nothing that was acknowledged is lost; while the replica is away, nothing is acknowledged."""
    primary, replica = servers(), servers()
    primary.copied_by(replica)
    proxy.retarget(primary.port)
    url = behind(primary.url(), proxy) + "?durability=replicated&replica_timeout=0.5"
    shop = await business(url, await connect(url))
    replica.pause()
    await until(lambda: "instead of 1" in shop.group.log)
    replica.resume()
    await shop.goes_on()
    proxy.retarget(replica.port)
    await asyncio.to_thread(primary.kill)
    replica.command("REPLICAOF", "NO", "ONE")
    follower = servers()
    replica.copied_by(follower)
    await shop.goes_on()
    ids = await shop.producer.end()
    engine = await open_engine(replica.url())
    jobs = await until_it_works(lambda: finished(engine, ids))
    assert states(jobs) == {"completed": len(ids)}
    assert set(noted(tmp_path, "quick")) >= {show_id(job_id) for job_id in ids}
    await engine.close()
    assert await shop.group.stop() == 0


async def test_a_storm_of_kills_and_forgotten_scripts(
    url: str, connect: Connect, command: Command, business: Open
) -> None:
    shop = await business(url, await connect())
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for kind in ("normal", "pubsub"):
            await asyncio.to_thread(command, "CLIENT", "KILL", "TYPE", kind)
        await asyncio.to_thread(command, "SCRIPT", "FLUSH")
        await asyncio.sleep(0.1)  # as often as that: it is the storm
    await shop.goes_on()
    await shop.ends_well()


@pytest.mark.parametrize("direction", ["requests", "replies"])
async def test_a_black_hole(url: str, connect: Connect, proxy: Proxy, business: Open, direction: str) -> None:
    """Nothing passes and nobody says so, for longer than a lease."""
    shop = await business(behind(url, proxy) + "?call_timeout=0.5", await connect())
    proxy.mute(direction)
    await until(lambda: "heartbeat failed" in shop.group.log and "did not answer" in shop.group.log)
    failed = time.monotonic()
    await until(lambda: time.monotonic() > failed + 1.0)
    proxy.mute(direction, on=False)
    await shop.goes_on()
    await shop.ends_well()


async def test_replies_cut_after_the_step(url: str, connect: Connect, proxy: Proxy, business: Open) -> None:
    """Of enqueues, of claims, of settles, of heartbeats: again and again."""
    shop = await business(behind(url, proxy), await connect())
    for _ in range(8):
        for purpose in ("enqueues", "claims", "settles", "heartbeats"):
            proxy.cut_next_reply(purpose)
        await shop.producer.goes_on(5)
    await shop.goes_on()
    await shop.ends_well()
    assert proxy.cuts >= 16


async def test_a_server_that_becomes_full_under_load(
    own_server: RedisServer, connect: Connect, business: Open
) -> None:
    """New work is refused, running work ends; when there is room again, everything goes on."""
    engine = await connect(own_server.url())
    shop = await business(own_server.url(), engine)
    own_server.command("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(EngineFull):
        await engine.jobs.enqueue([a_job()])
    await shop.is_quiet()  # what was there is worked off
    other = await shop.another_group()  # a worker that starts now is welcome
    own_server.command("CONFIG", "SET", "maxmemory", "0")
    await shop.goes_on()
    await shop.ends_well()
    assert await other.stop() == 0
