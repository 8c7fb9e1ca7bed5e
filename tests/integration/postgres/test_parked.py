"""Gates that are parked, beside transactions of others."""

import pytest

from tests.integration.postgres.conftest import Plain
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.queues.queue import Limit, QueueOptions
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
