"""Signals of what a user's own transaction stores, and of what a claim had to pass."""

from tests.integration.postgres.conftest import Plain
from tests.integration.postgres.transacted import play
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.event import ready_topic
from tidemill.testing.contract.fixtures import a_job


async def test_a_users_transaction_wakes_workers(engine: PostgresEngine, plain: Plain) -> None:
    subscription = await engine.signals.subscribe(ready_topic("q"))
    user = await plain()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([a_job()]))
        assert await subscription.next(0.1) is None
    signal = await subscription.next(5)
    assert signal is not None
    assert signal.topic == ready_topic("q")


async def test_a_ready_parent_is_told_of_when_it_gets_a_child(engine: PostgresEngine) -> None:
    """It is locked meanwhile, and a claim that came for it has passed it."""
    subscription = await engine.signals.subscribe(ready_topic("q"))
    parent = a_job()
    await engine.jobs.enqueue([parent])
    assert await subscription.next(5) is not None
    await engine.jobs.enqueue([a_job(queue="later", after=(parent.id,))])
    assert await subscription.next(5) is not None
