"""Two servers, one of which follows the other: the second takes over, and everybody goes on by themselves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from tests.integration.outages import until_it_works
from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job as a_job_of_the_app
from tests.integration.supervisor.groups import counts_by_queue, enqueue, finished, noted, states
from tests.integration.supervisor.processes import until
from tests.servers.fixtures import server_or_skip
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.errors import EngineUnavailable
from tidemill.testing.contract.fixtures import Clock, a_claimant, a_job, completed, created, ids_of, some_jobs

pytestmark = pytest.mark.row("B15", "D7")


class Two(NamedTuple):
    """What is committed on the first is on the second too."""

    primary: PostgresServer
    standby: PostgresServer

    @property
    def url(self) -> str:
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://tidemill@{hosts}/postgres?connect_timeout=5"

    async def demote(self) -> None:
        """The first stays up and can only be read; the second takes over."""
        await execute(self.primary, "ALTER SYSTEM SET default_transaction_read_only = on")
        await execute(self.primary, "SELECT pg_reload_conf()")
        await asyncio.to_thread(self.standby.promote)

    async def kill(self) -> None:
        """The first is gone; the second takes over."""
        await asyncio.to_thread(self.primary.kill)
        await asyncio.to_thread(self.standby.promote)


async def execute(server: PostgresServer, sql: str) -> Any:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url())
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()


@pytest.fixture
async def two(engine_mode: str) -> AsyncIterator[Two]:
    primary = server_or_skip()
    pair = Two(primary, await asyncio.to_thread(primary.standby))
    await execute(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
    await execute(primary, "SELECT pg_reload_conf()")
    yield pair
    for server in pair:
        server.close()


async def connected(url: str) -> PostgresEngine:
    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    return engine


async def port_of(engine: PostgresEngine) -> int:
    return int((await engine.store.read("SELECT current_setting('port')::int"))[0][0])


async def test_the_one_that_can_be_written_to_is_found_in_any_order(two: Two) -> None:
    hosts, back = (
        two.url.split("@")[1].split("/")[0],
        f"127.0.0.1:{two.standby.port},127.0.0.1:{two.primary.port}",
    )
    for url in (two.url, two.url.replace(hosts, back)):
        engine = await connected(url)
        assert await port_of(engine) == two.primary.port
        await engine.close()


async def test_a_standby_alone_is_not_taken(two: Two) -> None:
    await (await connected(two.primary.url())).close()
    with pytest.raises(EngineUnavailable, match="cannot be written to"):
        await open_engine(two.standby.url() + "?target_session_attrs=read-write")
    await asyncio.to_thread(two.primary.kill)
    with pytest.raises(
        EngineUnavailable, match=rf"{two.primary.port}: connection refused; .*cannot be written"
    ):
        await open_engine(two.url)


@pytest.mark.parametrize("how", ["demote", "kill"])
async def test_calls_go_on_with_the_other(two: Two, how: str, clock: Clock) -> None:
    engine = await connected(two.url)
    claimant = await a_claimant(engine, clock)
    before = some_jobs(4)
    await engine.jobs.enqueue(before, now=clock.now)
    first, second = await claimant.take(most=2)
    await engine.inspect.counts(now=clock.now)
    subscription = await engine.signals.subscribe("news")
    await getattr(two, how)()
    after = some_jobs(2)
    await until_it_works(partial(engine.jobs.enqueue, after, now=clock.now))
    assert await port_of(engine) == two.standby.port, "reads go there too, not to what is old"
    settled = await until_it_works(partial(engine.jobs.settle, [completed(first)], now=clock.now))
    assert len(settled.answers) == 1
    await until_it_works(lambda: claimant.release(second))
    await until_it_works(claimant.heartbeat)
    rest = await until_it_works(lambda: claimant.take(most=10))
    assert ids_of(rest) == ids_of([before[1], *before[2:], *after])
    async with asyncio.timeout(20):  # listeners are told to poll, and receive again
        await subscription.next()
        while (await until_it_works(lambda: say(engine)), await subscription.next(1.0))[1] is None:
            pass
    await engine.close()


async def say(engine: PostgresEngine) -> None:
    await engine.signals.publish("news", "again")


async def test_a_server_that_is_read_only_for_a_while(own_server: PostgresServer, clock: Clock) -> None:
    """One host alone: what is refused meanwhile is an outage, never bad input, and passes."""
    engine = await connected(own_server.url())
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await execute(own_server, "ALTER SYSTEM SET default_transaction_read_only = on")
    await execute(own_server, "SELECT pg_reload_conf()")
    with pytest.raises(EngineUnavailable, match="read-only"):
        await until_refused(engine)
    assert (await engine.inspect.counts(now=clock.now))[0].ready, "it can be read"
    await execute(own_server, "ALTER SYSTEM RESET default_transaction_read_only")
    await execute(own_server, "SELECT pg_reload_conf()")
    assert created(await until_it_works(lambda: engine.jobs.enqueue([a_job()], now=clock.now))) == [True]
    await engine.close()


async def until_refused(engine: PostgresEngine) -> None:
    """The server reads its settings in a moment."""
    async with asyncio.timeout(10):
        while True:
            await engine.jobs.enqueue([a_job()])


@pytest.mark.parametrize("how", ["demote", "kill"])
async def test_workers_and_producers_go_on_with_the_other(
    two: Two, how: str, groups: Callable[[str], StartGroup], tmp_path: Path
) -> None:
    """Nothing is lost, and nothing runs or settles twice: nobody was killed."""
    engine = await connected(two.url)
    group = await groups(two.url)(processes=2, slots=4).ready(2)
    ids: list[bytes] = []
    moved = asyncio.Event()

    async def produce() -> None:
        while not moved.is_set() or len(ids) < 100:
            job = a_job_of_the_app("quick", str(tmp_path))
            await until_it_works(partial(engine.jobs.enqueue, [job]))
            ids.append(job.id)

    producing = asyncio.ensure_future(produce())
    long = await enqueue(engine, a_job_of_the_app("wait_for", str(tmp_path), "go"))
    await until(lambda: noted(tmp_path, "waiting") and len(noted(tmp_path, "quick")) > 20)
    await getattr(two, how)()
    moved.set()
    await producing
    jobs = await until_it_works(lambda: finished(engine, ids))
    (tmp_path / "go").touch()
    jobs += await finished(engine, long)
    assert states(jobs) == {"completed": len(jobs)}
    assert {(job.attempts, job.lost_runs) for job in jobs} == {(1, 0)}
    ran = noted(tmp_path, "quick")
    assert len(ran) == len(set(ran)) == len(ids)
    assert (await counts_by_queue(engine))["default"].window.completed == len(jobs)
    assert await group.stop() == 0
    await engine.close()
