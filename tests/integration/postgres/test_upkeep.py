"""What keeps the tables small and the numbers right over time."""

import asyncio
import time

import pytest

from penstock.engines.postgres.engine import PostgresEngine
from penstock.model.queue import Keep, Limit, QueueOptions
from penstock.testing.contract.fixtures import Claimant, Clock, a_job, ids_of, some_jobs
from tests.integration.postgres.conftest import Plain


async def test_hot_tables_are_vacuumed_by_dead_rows(plain: Plain) -> None:
    rows = await (await plain()).fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'penstock'::regnamespace AND relkind = 'r' "
        "AND EXISTS (SELECT 1 FROM unnest(reloptions) AS o WHERE o LIKE 'autovacuum_vacuum_threshold%')"
    )
    assert {"job", "lane", "lane_new", "freed", "finished_new", "member", "claimant"} <= {
        row[0] for row in rows
    }


async def test_a_fence_does_not_repeat_after_a_restore(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    before = (await claimant.take(most=2))[-1].fence
    await (await plain()).execute("SELECT setval('penstock.fence', 1)")
    assert min(job.fence for job in await claimant.take()) > before


async def test_retention_is_done_in_chunks(engine: PostgresEngine, claimant: Claimant, clock: Clock) -> None:
    await engine.queues.configure("q", QueueOptions(keep_completed=Keep(count=10)), now=clock.now)
    for _ in range(3):
        await engine.jobs.enqueue(some_jobs(500), now=clock.now)
        await claimant.complete(*await claimant.take(most=500))
    chunks = []
    while (pruned := await engine.jobs.prune(limit=400, now=clock.now)).more:
        chunks.append(pruned.jobs)
    assert chunks == [400] * 3
    assert (await engine.inspect.counts(now=clock.now))[0].completed == 10


async def test_announcements_and_counts_are_folded(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    connection = await plain()
    await engine.queues.configure("q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await engine.jobs.enqueue([a_job(key=str(n)) for n in range(20)], now=clock.now)
    await claimant.complete(*await claimant.take())
    assert await claimant.take() == []
    await engine.jobs.promote(now=clock.now)
    for table in ("lane_new", "queue_new", "freed", "finished_new", "lane", "parked"):
        assert await connection.fetchval(f"SELECT count(*) FROM penstock.{table}") == 0, table


@pytest.mark.row("B1")
async def test_claims_stay_quick_under_a_snapshot_that_is_held_open(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Dead index entries pile up and cannot be removed; a claim starts behind them."""
    reader = await plain()
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        await reader.fetch("SELECT count(*) FROM penstock.job")
        slowest = 0.0
        for _ in range(15):
            await engine.jobs.enqueue(some_jobs(1_000), now=clock.now)
            for _ in range(5):
                begin = time.perf_counter()
                runs = await claimant.take(most=200)
                slowest = max(slowest, time.perf_counter() - begin)
                await claimant.complete(*runs)
        begin = time.perf_counter()
        assert await claimant.take() == []
        idle = time.perf_counter() - begin
    assert slowest < 2.0, "a ceiling for any machine; ./dev bench measures"
    assert idle < 0.5


async def test_two_processes_share_a_limit_and_lose_no_permit(
    engine: PostgresEngine, claimant: Claimant, clock: Clock
) -> None:
    """Claims and settles of one key's gate cross each other; none of them leaves it parked for ever."""
    await engine.queues.configure("q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    jobs = [a_job(key=key) for key in "abc" for _ in range(20)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = Claimant(engine, clock, member=claimant.member)
    done: list[bytes] = []

    async def work(worker: Claimant) -> None:
        while len(done) < len(jobs):
            for run in await worker.take(most=2):
                await worker.complete(run)
                done.append(run.id)

    async with asyncio.timeout(60):
        await asyncio.gather(work(claimant), work(other))
    assert sorted(done) == sorted(ids_of(jobs))
