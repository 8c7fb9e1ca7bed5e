"""Declarations beside claims that hold a queue's lock."""

import asyncio

from tests.integration.postgres.conftest import Plain
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import Clock, configure

LOCK = "SELECT pg_advisory_xact_lock(tidemill.lock_v1('queue', 'q'))"


async def test_a_restart_that_changes_nothing_waits_for_no_queue(
    engine: PostgresEngine, plain: Plain, clock: Clock
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
    claim = await plain()
    held = claim.transaction()
    await held.start()
    await claim.fetch(LOCK)
    await claim.fetch("SELECT 1 FROM tidemill.queue WHERE name = 'q' FOR UPDATE")
    clock.forward(1)
    async with asyncio.timeout(20):
        await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
        await engine.queues.override("q", {"concurrency": 5}, by="ann", now=clock.now)
    lowered = asyncio.create_task(engine.queues.override("q", {"concurrency": 4}, by="ann", now=clock.now))
    done, _ = await asyncio.wait({lowered}, timeout=0.2)  # whatever changes a limit waits for the claim
    assert not done
    await held.rollback()
    await lowered
    (queue,) = await engine.queues.list()
    assert (queue.options, queue.version) == (QueueOptions(concurrency=4), 4)
