"""Gates that are parked, beside transactions of others."""

import asyncio

import pytest

from tests.integration.postgres.conftest import Plain
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, configure, ids_of


@pytest.mark.row("E1")
async def test_a_job_that_somebody_has_locked_closes_no_gate(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """The claim finds it and cannot take it: the permit that it would have needed is free."""
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    job = a_job(key="k")
    await engine.jobs.enqueue([job], now=clock.now)
    other = await plain()
    held = other.transaction()
    await held.start()
    await other.fetch("SELECT 1 FROM tidemill.job WHERE id = $1 FOR NO KEY UPDATE", job.id)
    assert await claimant.take() == []
    await held.rollback()
    assert ids_of(await claimant.take()) == ids_of([job])


async def test_a_claim_that_left_a_locked_job_comes_again_soon(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Nobody tells when the job is free, and all behind it wait with it. Not at once: a user's transaction
    may hold it for minutes."""
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=5)), now=clock.now)
    head, behind, beside = a_job(key="k"), a_job(key="k"), a_job(key="other")
    await engine.jobs.enqueue([head, behind, beside], now=clock.now)
    other = await plain()
    held = other.transaction()
    await held.start()
    await other.fetch("SELECT 1 FROM tidemill.job WHERE id = $1 FOR NO KEY UPDATE", head.id)
    for found in ([beside], []):
        claim = await claimant.claim()
        assert ids_of(claim.jobs) == ids_of(found)
        assert claim.wait is not None
        assert SECOND // 100 <= claim.wait <= SECOND // 10
    await held.rollback()
    claim = await claimant.claim()
    assert ids_of(claim.jobs) == ids_of([head, behind])
    assert claim.wait is None


CHANGES = pytest.mark.parametrize(
    ("before", "after"),
    [
        (QueueOptions(concurrency=1), QueueOptions(per_task={"t": Limit(concurrency=1)})),
        (QueueOptions(concurrency=1), QueueOptions(per_key=Limit(concurrency=1))),
        (QueueOptions(rate=Rate(1_000, per=3_600)), QueueOptions(concurrency=1)),
    ],
    ids=["task", "key", "rate"],
)


@pytest.mark.row("E1")
@CHANGES
async def test_a_run_that_ends_while_the_limits_change_frees_its_place(
    engine: PostgresEngine,
    claimant: Claimant,
    plain: Plain,
    clock: Clock,
    before: QueueOptions,
    after: QueueOptions,
) -> None:
    """Its transaction does not know the gate that a claim parks meanwhile because of it."""
    await configure(engine, "q", before, now=clock.now)
    await engine.jobs.enqueue([a_job(task="t", key="k")], now=clock.now)
    (run,) = await claimant.take()
    job = a_job(task="t", key="k")
    await engine.jobs.enqueue([job], now=clock.now)
    other = await plain()
    async with other.transaction():
        await other.execute("SET LOCAL search_path TO tidemill")
        complete = "SELECT applied FROM complete_v1(ARRAY[$1::bytea], ARRAY[$2::bigint], '{0}', '{NULL}', $3)"
        assert await other.fetchval(complete, run.id, run.fence, clock.now) == [run.id]
        await configure(engine, "q", after, now=clock.now + 1)
        assert await claimant.take() == []
    async with asyncio.timeout(30):  # until all older transactions of the server have ended
        while not (runs := await claimant.take()):
            continue
    assert ids_of(runs) == ids_of([job])


@pytest.mark.row("E1", "F7")
@CHANGES
async def test_a_run_that_ends_by_an_old_snapshot_frees_its_place(
    engine: PostgresEngine,
    claimant: Claimant,
    plain: Plain,
    clock: Clock,
    before: QueueOptions,
    after: QueueOptions,
) -> None:
    """The user's transaction is younger than the change of the limits, and yet knows only what was before."""
    await configure(engine, "q", before, now=clock.now)
    await engine.jobs.enqueue([a_job(task="t", key="k")], now=clock.now)
    (run,) = await claimant.take()
    job = a_job(task="t", key="k")
    await engine.jobs.enqueue([job], now=clock.now)
    other = await plain()
    async with other.transaction(isolation="repeatable_read"):
        await other.execute("SELECT 1")
        await configure(engine, "q", after, now=clock.now + 1)
        for _ in range(3):
            assert await claimant.take() == []
        complete = "SELECT tidemill.complete_here_v1($1, $2, 0, NULL, 'nobody')"
        assert await other.fetchval(complete, run.id, run.fence) == 0
        assert await claimant.take() == []
    assert ids_of(await claimant.take()) == ids_of([job])


async def test_no_claim_passes_lanes_that_are_announced_and_not_opened_yet(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """One claim opens 10,000: jobs of a higher priority may stand behind these."""
    await configure(engine, "q", QueueOptions(concurrency=5, per_key=Limit(concurrency=1)), now=clock.now)
    first, second = a_job(key="a", priority=6), a_job(key="b", priority=4)
    await engine.jobs.enqueue([first], now=clock.now)
    await (await plain()).execute(
        "INSERT INTO tidemill.lane_new SELECT l.* FROM tidemill.lane_new AS l, generate_series(1, 9999)"
    )
    await engine.jobs.enqueue([second], now=clock.now)
    claim = await claimant.claim()
    assert (claim.jobs, claim.wait) == ([], 0)
    assert ids_of(await claimant.take()) == ids_of([second, first])


async def test_a_claim_that_has_not_opened_all_gates_comes_again_at_once(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """One claim folds 10,000 ends of runs."""
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await engine.jobs.enqueue([a_job(key="k") for _ in range(2)], now=clock.now)
    (run,) = await claimant.take()
    assert await claimant.take() == []
    others = "INSERT INTO tidemill.freed SELECT 'q', '', 'other' FROM generate_series(1, 10000)"
    await (await plain()).execute(others)
    await claimant.complete(run)
    claim = await claimant.claim()
    assert (claim.jobs, claim.wait) == ([], 0)
    assert len(await claimant.take()) == 1


@pytest.mark.row("E1")
async def test_a_run_that_is_locked_does_not_hold_up_the_first_limit(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """As one that a user's transaction completes. It counts once that transaction is over."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    (run,) = await claimant.take()
    other = await plain()
    held = other.transaction()
    await held.start()
    await other.fetch("SELECT 1 FROM tidemill.job WHERE id = $1 FOR NO KEY UPDATE", run.id)
    async with asyncio.timeout(20):
        await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
        assert await claimant.take() == []
    await held.rollback()
    changing = "SELECT EXISTS (SELECT 1 FROM tidemill.queue WHERE stale IS NOT NULL OR reshaped IS NOT NULL)"
    async with asyncio.timeout(20):
        while await other.fetchval(changing):
            assert await claimant.take() == []
    second = a_job()
    await engine.jobs.enqueue([second], now=clock.now)
    assert await claimant.take() == []
    await claimant.complete(run)
    assert ids_of(await claimant.take()) == [second.id]
