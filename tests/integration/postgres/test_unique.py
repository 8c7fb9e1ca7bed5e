"""A user's transaction holds a unique key: who waits for it, and who does not."""

import pytest

from tests.integration.postgres.conftest import Plain
from tests.integration.postgres.transacted import play
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.jobs.job import JobState, Stored
from tidemill.model.jobs.run import Answer
from tidemill.testing.contract.fixtures import Claimant, created, job_of, states_of
from tidemill.testing.contract.unique.unique_keys import of

pytestmark = pytest.mark.row("F12")


async def test_an_enqueue_waits_a_second_for_a_transaction_that_stores_its_key(
    engine: PostgresEngine, plain: Plain
) -> None:
    user = await plain()
    mine = of("a")
    async with user.transaction():
        await play(user, engine.transactions.enqueue([mine]))
        with pytest.raises(EngineUnavailable, match="lock timeout"):
            await engine.jobs.enqueue([of("b"), of("a")])
        assert created(await engine.jobs.enqueue([of("b")])) == [True], "nothing of the other call was stored"
    assert await engine.jobs.enqueue([of("a")]) == [Stored(mine.id, False)]


async def test_a_run_that_goes_back_does_not_wait(
    engine: PostgresEngine, plain: Plain, claimant: Claimant
) -> None:
    clock, user = claimant.clock, await plain()
    first, second = of(unique={"until": "start"}), of("y", unique={"until": "start"})
    mine = of()
    await engine.jobs.enqueue([first, second], now=clock.now)
    released, retried = await claimant.take()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([mine]))
        await user.execute("SET LOCAL lock_timeout = 0")
        assert await claimant.release(released) == [Answer.APPLIED]
        assert await claimant.fail(retried, retry_in=0) == [Answer.APPLIED]
    assert await states_of(engine, [first, second, mine]) == [
        JobState.READY, JobState.SCHEDULED, JobState.READY,
    ]  # fmt: skip
    met = await engine.jobs.enqueue([of(), of("y")], now=clock.now)
    assert met == [Stored(mine.id, False), Stored(second.id, False)], "it went without, the other took it"


async def test_a_holder_that_is_committed_is_met_without_waiting(
    engine: PostgresEngine, plain: Plain, claimant: Claimant
) -> None:
    """Although a user's transaction has its row locked, as one that completes it has."""
    clock, user = claimant.clock, await plain()
    job = of()
    await engine.jobs.enqueue([job], now=clock.now)
    await claimant.take()
    async with user.transaction():
        await user.execute("SELECT 1 FROM tidemill.job WHERE id = $1 FOR UPDATE", job.id)
        for conflict in ("existing", "replace"):
            new = of(unique={"on_conflict": conflict})
            assert await engine.jobs.enqueue([new], now=clock.now) == [Stored(job.id, False)]


async def test_a_replace_waits_for_the_claim_that_takes_its_job(
    engine: PostgresEngine, plain: Plain, claimant: Claimant
) -> None:
    """What is replaced has its row locked; what was taken meanwhile is not replaced."""
    clock, user = claimant.clock, await plain()
    job = of()
    await engine.jobs.enqueue([job], now=clock.now)
    new = of(unique={"on_conflict": "replace"}, body=b"[[2],{}]")
    async with user.transaction():
        await user.execute("SELECT 1 FROM tidemill.job WHERE id = $1 FOR UPDATE", job.id)
        with pytest.raises(EngineUnavailable, match="lock timeout"):
            await engine.jobs.enqueue([new], now=clock.now)
        await user.execute(
            "UPDATE tidemill.job SET state = 3, token = 1, fence = 1, claimant = $2 WHERE id = $1",
            job.id, claimant.id,
        )  # fmt: skip
    assert await engine.jobs.enqueue([new], now=clock.now) == [Stored(job.id, False)]
    assert (await job_of(engine, job.id)).body == job.body
