"""Two processes on one namespace: nothing is lost, nothing done twice, both get on; they wake each other."""

import asyncio
import json

import pytest

from penstock.engines.postgres.engine import PostgresEngine
from penstock.model.event import ready_topic
from penstock.testing.contract.fixtures import a_job
from tests.integration.postgres.conftest import Plain
from tests.integration.sqlite.children import child
from tests.integration.sqlite.test_two_processes import WORKS

JOBS = 1_000
"""Of each process."""

ENQUEUES = """
import asyncio, sys
from penstock.engine.registry import connect
from penstock.testing.contract.fixtures import a_job

async def main(url):
    engine = await connect(url)
    print("open")
    input()
    await engine.jobs.enqueue([a_job()])
    await engine.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.row("F1")
async def test_nothing_is_lost_nothing_twice_and_both_get_a_share(url: str, plain: Plain) -> None:
    with child(WORKS, url, "one", JOBS) as one, child(WORKS, url, "other", JOBS) as other:
        assert [one.hear(), other.hear()] == ["open", "open"]
        one.tell()
        other.tell()
        done = [json.loads(await asyncio.to_thread(each.hear)) for each in (one, other)]
        assert [one.end(), other.end()] == [0, 0]
    taken = done[0] + done[1]
    assert len(taken) == len(set(taken)) == 2 * JOBS
    assert min(map(len, done)) > 0
    connection = await plain()
    rows = await connection.fetch("SELECT state, attempts, count(*) FROM penstock.job GROUP BY 1, 2")
    assert [tuple(row) for row in rows] == [(4, 1, 2 * JOBS)]


async def test_one_wakes_the_other(url: str, engine: PostgresEngine) -> None:
    subscription = await engine.signals.subscribe(ready_topic("q"))
    with child(ENQUEUES, url) as other:
        assert await asyncio.to_thread(other.hear) == "open"
        other.tell()
        signal = await subscription.next(10)
        assert signal is not None
        assert signal.topic == ready_topic("q")
        assert other.end() == 0


async def test_a_users_transaction_wakes_workers(engine: PostgresEngine, plain: Plain) -> None:
    subscription = await engine.signals.subscribe(ready_topic("q"))
    user = await plain()
    async with user.transaction():
        for statement in engine.transactions.enqueue([a_job()]):
            await user.execute(statement.sql, *statement.parameters)
        assert await subscription.next(0.1) is None
    signal = await subscription.next(5)
    assert signal is not None
    assert signal.topic == ready_topic("q")
