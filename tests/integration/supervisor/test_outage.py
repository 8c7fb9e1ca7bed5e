"""An engine that cannot be reached, with nobody killed."""

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.supervisor.conftest import StartGroup, start_groups
from tests.integration.supervisor.groups import a_job, enqueue, finished, get, noted, noted_pids, states
from tests.integration.supervisor.processes import until
from tests.servers.postgres_urls import PostgresUrls
from tests.servers.redis_urls import RedisUrls
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.time import SECOND

LEASES = 3
"""An outage has no end to wait for. A shorter lease would run out on a busy machine without any outage."""

Outage = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def group(engine_url: str, tmp_path: Path) -> Iterator[StartGroup]:
    """Groups that lose patience soon: an outage is noticed by every call that fails."""
    soon = "&lock_timeout=0.1" if engine_url.startswith("sqlite") else ""
    yield from start_groups(f"{engine_url}{soon}", tmp_path)


@pytest.fixture
def outage(engine_mode: str, engine_url: str, request: pytest.FixtureRequest) -> Outage:
    """Nobody can write while it lasts."""
    if engine_mode == "postgres-server":
        urls: PostgresUrls = request.getfixturevalue("postgres_urls")
        return lambda: urls.outage(engine_url)
    if engine_mode == "redis-server":
        redis: RedisUrls = request.getfixturevalue("redis_urls")
        return redis.outage
    assert engine_mode == "sqlite-file"

    @contextmanager
    def locked() -> Iterator[None]:
        db = sqlite3.connect(urlsplit(engine_url).path, isolation_level=None, timeout=30)
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
        db.close()

    return locked


@pytest.mark.every_engine
@pytest.mark.row("D2", "D3", "A4")
async def test_an_outage_of_three_leases_costs_nobody_its_jobs(
    engine: Engine,
    group: StartGroup,
    tmp_path: Path,
    outage: Outage,
) -> None:
    """Silence is no evidence while the engine was out of reach. What ends meanwhile is settled afterwards."""
    one = await group("one", slots=2).ready()
    other = await group("other", slots=2).ready()
    short = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "short") for _ in range(2)])
    long = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "long") for _ in range(2)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 4)
    with outage():
        began = time.monotonic()
        await until(lambda: "heartbeat failed" in one.log and "heartbeat failed" in other.log)
        (tmp_path / "short").touch()
        await asyncio.sleep(LEASES * 1.0 - (time.monotonic() - began))
    jobs = await finished(engine, short)
    assert states(await get(engine, long)) == {"running": 2}
    (tmp_path / "long").touch()
    jobs += await finished(engine, long)
    assert states(jobs) == {"completed": 4}
    assert {(job.attempts, job.lost_runs, job.failure_count) for job in jobs} == {(1, 0, 0)}
    assert len(noted(tmp_path, "waiting")) == 4, "each ran once"
    later = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(10)])
    assert states(await finished(engine, later)) == {"completed": 10}
    assert [await one.stop(), await other.stop()] == [0, 0]


@pytest.mark.every_engine
@pytest.mark.row("A4")
async def test_a_worker_that_dies_in_an_outage_is_buried_after_it(
    engine: Engine,
    group: StartGroup,
    tmp_path: Path,
    outage: Outage,
) -> None:
    one = await group(slots=2).ready()
    (poison,) = await enqueue(engine, a_job("wait_for", str(tmp_path), "go"))
    await until(lambda: noted(tmp_path, "waiting"))
    with outage():
        os.kill(noted_pids(tmp_path, "waiting")[0], signal.SIGKILL)
        await until(lambda: "is gone" in one.log and "heartbeat failed" in one.log)
        assert len(noted(tmp_path, "waiting")) == 1
    (tmp_path / "go").touch()
    (job,) = await finished(engine, [poison])
    assert (job.state, job.crashes, job.lost_runs) == (JobState.COMPLETED, 1, 0)


@pytest.mark.row("E4")
async def test_a_job_that_ended_in_time_is_not_stuck_while_its_outcome_waits(
    engine: Engine, group: StartGroup, tmp_path: Path, outage: Outage
) -> None:
    """Its deadline passes long after its code has ended: nobody is killed for that."""
    one = await group(slots=2, stuck_after_s=0.2, stuck_grace_s=0.2).ready()
    ids = await enqueue(engine, a_job("wait_for", str(tmp_path), "go", timeout=SECOND))
    await until(lambda: noted(tmp_path, "waiting"))
    with outage():
        (tmp_path / "go").touch()
        await asyncio.sleep(1.8)  # past its timeout, the time until it would be stuck, and the grace
    (job,) = await finished(engine, ids)
    assert (job.state, job.attempts, job.failure_count) == (JobState.COMPLETED, 1, 0)
    assert "that do not stop" not in one.log
    assert len(noted(tmp_path, "waiting")) == 1


@pytest.mark.every_engine
@pytest.mark.row("D2")
async def test_a_member_gives_up_after_so_many_failed_heartbeats_once_nothing_runs(
    engine: Engine,
    group: StartGroup,
    tmp_path: Path,
    outage: Outage,
) -> None:
    """With 75. What ran to its end meanwhile could not be settled: it runs again elsewhere."""
    one = await group("one", slots=2, give_up_after=3).ready()
    ids = await enqueue(engine, a_job("wait_for", str(tmp_path), "go"))
    await until(lambda: noted(tmp_path, "waiting"))
    with outage():
        await until(lambda: "giving up once nothing runs" in one.log)
        assert one.alive
        (tmp_path / "go").touch()
        assert await one.ended() == 75
    await group("other", slots=2).ready()
    (job,) = await finished(engine, ids)
    assert (job.state, job.result) == (JobState.COMPLETED, b'"other"')


@pytest.mark.every_engine
@pytest.mark.row("D2")
async def test_an_engine_that_is_away_at_the_start_is_waited_for(
    engine: Engine,
    group: StartGroup,
    tmp_path: Path,
    outage: Outage,
) -> None:
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    with outage():
        one = group()
        await until(lambda: "heartbeat failed" in one.log or "cannot be reached" in one.log)
    assert states(await finished(engine, ids)) == {"completed": 1}
    assert await one.stop() == 0


@pytest.mark.row("D2")
async def test_an_engine_that_stays_away_ends_it_with_75(
    engine: Engine, group: StartGroup, outage: Outage
) -> None:
    with outage():
        assert await group(give_up_after=2).ended() == 75
