"""Heartbeats and leaving, beside transactions of others."""

import asyncio

from tests.integration.postgres.conftest import Plain
from tests.integration.postgres.test_connections import PATIENCE_S
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.jobs.job import JobState
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, completed, ids_of, states_of

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def test_a_heartbeat_waits_for_no_transaction(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """A job that is not held any more goes back; one that a user's transaction is completing, with the
    heartbeat after its end."""
    done, free = a_job(), a_job()
    await engine.jobs.enqueue([done, free], now=clock.now)
    run, _ = await claimant.take()
    user = await plain()
    open_one = user.transaction()
    await open_one.start()
    script = engine.transactions.complete(completed(run))
    statement = next(script)
    try:
        while True:
            statement = script.send(await user.fetch(statement.sql, *statement.parameters))
    except StopIteration:
        pass
    async with asyncio.timeout(PATIENCE_S / 4):
        await claimant.heartbeat(held=())
    assert await states_of(engine, [done, free]) == [JobState.RUNNING, JobState.READY]
    await open_one.rollback()
    await claimant.heartbeat(held=())
    assert await states_of(engine, [done, free]) == [JobState.READY, JobState.READY]
    assert sorted(ids_of(await claimant.take())) == sorted(ids_of([done, free]))


async def test_leaving_locks_in_the_order_of_a_heartbeat(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """The member, then its claimants: in another order a heartbeat on its way and a member that leaves wait
    for each other."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.take()
    heartbeating, watching = await plain(), await plain()
    async with heartbeating.transaction():
        await heartbeating.fetch("SELECT 1 FROM tidemill.member WHERE id = $1 FOR UPDATE", claimant.member.id)
        leaving = asyncio.ensure_future(engine.members.leave(claimant.member.id, now=clock.now))
        async with asyncio.timeout(PATIENCE_S):
            while not await watching.fetchval(WAITING):  # noqa: ASYNC110  (the server notifies nobody)
                await asyncio.sleep(0.01)
        await heartbeating.execute("SET LOCAL lock_timeout = '500ms'")
        await heartbeating.execute("UPDATE tidemill.claimant SET oldest = oldest WHERE id = $1", claimant.id)
    assert await leaving == 1
