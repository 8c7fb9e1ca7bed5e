"""Workers and a producer, each a program of its own, while the way to their server fails."""

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.integration.outages import Groups, Open, business, until_it_works
from tests.integration.postgres.conftest import OURS, Connect, Plain, Servers, behind
from tests.integration.supervisor.groups import a_job, enqueue, finished, states
from tests.integration.supervisor.processes import until
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

__all__ = ["business"]

pytestmark = pytest.mark.row("A4", "D7", "B15")


async def test_a_server_killed_and_started_again_under_load(
    own_server: PostgresServer, connect: Connect, business: Open
) -> None:
    engine = await connect(own_server.url())
    shop = await business(own_server.url(), engine)
    for _ in range(2):
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
        await shop.goes_on()
    await shop.ends_well()


async def test_a_storm_of_terminated_backends(
    url: str, connect: Connect, plain: Plain, business: Open
) -> None:
    engine, other = await connect(), await plain()
    shop = await business(url, engine)
    terminated, end = 0, time.monotonic() + 2
    while time.monotonic() < end:
        rows = await other.fetch(f"SELECT pg_terminate_backend(pid) {OURS} AND random() < 0.3")
        terminated += len(rows)
        await asyncio.sleep(0.05)  # as often as that: it is the storm
    assert terminated > 20
    await shop.goes_on()
    await shop.ends_well()


@pytest.mark.parametrize("direction", ["requests", "replies"])
async def test_a_black_hole(url: str, connect: Connect, proxy: Proxy, business: Open, direction: str) -> None:
    """Nothing passes and nobody says so, for longer than a lease."""
    shop = await business(behind(url, proxy) + "?call_timeout=0.5&connect_timeout=0.5", await connect())
    proxy.mute(direction)
    await until(lambda: "heartbeat failed" in shop.group.log and "cannot be reached" in shop.group.log)
    failed = time.monotonic()
    await until(lambda: time.monotonic() > failed + 1.0)
    proxy.mute(direction, on=False)
    await shop.goes_on()
    await shop.ends_well()


async def test_replies_cut_after_the_commit(url: str, connect: Connect, proxy: Proxy, business: Open) -> None:
    """Of enqueues, of claims, of settles, of heartbeats: again and again."""
    shop = await business(behind(url, proxy), await connect())
    for _ in range(8):
        for purpose in ("enqueues", "claims", "settles", "heartbeats"):
            proxy.cut_next_reply(purpose)
        await shop.producer.goes_on(5)
    await shop.goes_on()
    await shop.ends_well()
    assert proxy.cuts >= 16


async def test_a_server_that_drops_idle_connections(
    servers: Servers, connect: Connect, groups: Groups, tmp_path: Path
) -> None:
    """Those of a worker that has nothing to do, all of them, every half second."""
    server = servers(settings={"idle_session_timeout": "500ms"})
    engine = await connect(server.url())
    group = await groups(server.url())(processes=2).ready(2)
    for round_ in range(1, 4):
        await until(partial(_has_dropped, server, 5 * round_))
        new = [a_job("quick", str(tmp_path)) for _ in range(5)]
        ids = await until_it_works(partial(enqueue, engine, *new))
        jobs = await until_it_works(partial(finished, engine, ids))
        assert {(job.state.value, job.attempts, job.lost_runs) for job in jobs} == {("completed", 1, 0)}
    assert await group.stop() == 0


def _has_dropped(server: PostgresServer, connections: int) -> bool:
    return server.log().count("idle-session timeout") >= connections


async def test_a_server_without_a_free_connection(
    servers: Servers, connect: Connect, groups: Groups, tmp_path: Path
) -> None:
    """It is said, and tried again until there is one."""
    server = servers(settings={"max_connections": "16", "superuser_reserved_connections": "0"})
    engine = await connect(server.url())
    ids = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(5)])
    taken: list[asyncpg.Connection[Any]] = []
    with pytest.raises(asyncpg.TooManyConnectionsError):
        await take_all(server, taken)
    group = groups(server.url())(processes=1)
    await until(lambda: "too many clients" in group.log)
    assert "up to nine connections" in group.log
    await taken.pop().close()
    await taken.pop().close()
    await until(lambda: group.log.count("too many clients") >= 2)
    for connection in taken:
        await connection.close()
    assert states(await until_it_works(lambda: finished(engine, ids))) == {"completed": 5}
    assert await group.stop() == 0


async def take_all(server: PostgresServer, taken: "list[asyncpg.Connection[Any]]") -> None:
    while True:
        taken.append(await asyncpg.connect(server.url()))
