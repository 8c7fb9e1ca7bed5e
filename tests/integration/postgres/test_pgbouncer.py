"""Behind a PgBouncer in transaction mode: each statement may meet another server process."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.integration.postgres.conftest import Connect
from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job as a_job_of_the_app
from tests.integration.supervisor.groups import enqueue, finished, noted, states
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres_urls import PostgresUrls
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.errors import BadUrl
from tidemill.model.event import ANY_TOPIC, Signal, ready_topic
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    completed,
    created,
    ids_of,
    some_jobs,
)

pytestmark = pytest.mark.row("B15")


@pytest.fixture(params=["pgbouncer-transaction"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    """A family of its own: where PgBouncer is missing the run says so."""
    mode: str = request.param
    return mode


@pytest.fixture
def url(engine_mode: str, postgres_urls: PostgresUrls, pgbouncer: PgBouncer) -> Iterator[str]:
    """An empty database, by way of PgBouncer."""
    direct = postgres_urls.fresh()
    yield pgbouncer.url(urlsplit(direct).path.removeprefix("/"))
    postgres_urls.release()


async def test_everything_works_on_changing_processes(connect: Connect, clock: Clock) -> None:
    """Two engines in one pool of five, many calls at once: no statement is missed, none is mistaken."""
    one, other = await connect(), await connect()
    workers = [await a_claimant(engine, clock) for engine in (one, other)]
    jobs = some_jobs(200)
    done: list[bytes] = []

    async def produce(engine: PostgresEngine, part: int) -> None:
        for job in jobs[part::2]:
            assert created(await engine.jobs.enqueue([job], now=clock.now)) == [True]

    async def work(worker: Claimant) -> None:
        while len(done) < len(jobs):
            runs = await worker.take(most=7)
            if runs:
                settled = await worker.settle(*[completed(run) for run in runs])
                assert set(settled.answers) == {Answer.APPLIED}
                done.extend(ids_of(runs))
            await worker.engine.inspect.counts(now=clock.now)

    async with asyncio.timeout(60):
        await asyncio.gather(produce(one, 0), produce(other, 1), *map(work, workers))
    assert sorted(done) == sorted(ids_of(jobs))
    found = await one.inspect.get(ids_of(jobs))
    assert {job.state for job in found if job} == {JobState.COMPLETED}


async def test_it_is_noticed_and_logged(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tidemill.engine"):
        engine = await connect()
    assert "a pooler stands before" in caplog.text
    subscription = await engine.signals.subscribe("news")
    assert await subscription.next(5) == Signal(ANY_TOPIC), "polled for, because nothing can be received"


async def test_signals_are_received_from_the_server_itself(
    connect: Connect, url: str, postgres_urls: PostgresUrls
) -> None:
    engine = await connect(f"{url}?listen=127.0.0.1:{postgres_urls.server.port}")
    other = await connect()
    subscription = await engine.signals.subscribe(ready_topic("q"))
    await other.jobs.enqueue([a_job()])
    assert await subscription.next(10) == Signal(ready_topic("q"))


@pytest.fixture(params=["keeps statements", "loses statements"])
def trusted(
    request: pytest.FixtureRequest, url: str, postgres_urls: PostgresUrls, pgbouncer: PgBouncer
) -> Iterator[PgBouncer]:
    """One that may keep prepared statements, and one that does not."""
    if request.param == "keeps statements":
        yield pgbouncer
        return
    pooler = PgBouncer(postgres_urls.server, statements=0).start()
    yield pooler
    pooler.close()


async def test_prepared_statements_that_get_lost_are_given_up(
    connect: Connect, url: str, trusted: PgBouncer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The URL says that they are safe. At the first that is missing we know better, and repeat the call."""
    trusted_url = trusted.url(urlsplit(url).path.removeprefix("/"))
    engines = [await connect(f"{trusted_url}?prepared=yes") for _ in range(2)]

    async def enqueue_some(engine: PostgresEngine) -> None:
        for _ in range(20):
            await engine.jobs.enqueue([a_job()], now=clock.now)
            await engine.inspect.counts(now=clock.now)

    with caplog.at_level(logging.INFO, "tidemill.engine"):
        await asyncio.gather(*map(enqueue_some, engines))
    assert ("a pooler stands before" in caplog.text) is not trusted.keeps_statements
    assert (await engines[0].inspect.counts(now=clock.now))[0].ready == 40


async def test_durability_has_to_be_said_to_the_role(connect: Connect, url: str) -> None:
    with pytest.raises(BadUrl, match=r"synchronous_commit.*set it for the role"):
        await connect(f"{url}?durability=off")


async def test_a_worker_runs_jobs_from_end_to_end(
    connect: Connect, url: str, groups: Callable[[str], StartGroup], tmp_path: Path
) -> None:
    engine = await connect()
    group = await groups(url)(processes=2, slots=4).ready(2)
    ids = await enqueue(engine, *[a_job_of_the_app("quick", str(tmp_path)) for _ in range(60)])
    assert states(await finished(engine, ids)) == {"completed": 60}
    assert len(noted(tmp_path, "quick")) == 60
    connection: asyncpg.Connection = await asyncpg.connect(url, statement_cache_size=0)
    held = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tidemill %' AND state <> 'idle'"
    )
    assert await connection.fetchval(held) <= 5, "a pool of five, however many processes"
    await connection.close()
    assert await group.stop() == 0
