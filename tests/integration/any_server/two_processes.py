"""Two processes on one namespace: nothing is lost, nothing done twice, both get on; they wake each other."""

import asyncio
import json

import pytest

from tests.integration.sqlite.children import child
from tests.integration.sqlite.test_two_processes import WORKS
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.event import ready_topic

JOBS = 1_000
"""Of each process."""

ENQUEUES = """
import asyncio, sys
from tidemill.engine.registry import connect
from tidemill.testing.contract.fixtures import a_job

async def main(url):
    engine = await connect(url)
    print("open")
    input()
    await engine.jobs.enqueue([a_job()])
    await engine.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.row("F1")
async def test_nothing_is_lost_nothing_twice_and_both_get_a_share(url: str, engine: Engine) -> None:
    with child(WORKS, url, "one", JOBS) as one, child(WORKS, url, "other", JOBS) as other:
        assert [one.read(), other.read()] == ["open", "open"]
        one.go_on()
        other.go_on()
        done = [json.loads(await asyncio.to_thread(each.read)) for each in (one, other)]
        assert [one.end(), other.end()] == [0, 0]
    taken = done[0] + done[1]
    assert len(taken) == len(set(taken)) == 2 * JOBS
    assert min(map(len, done)) > 0
    (counts,) = await engine.inspect.counts()
    assert (counts.completed, counts.ready, counts.running) == (2 * JOBS, 0, 0)
    for at in range(0, len(taken), BATCH_LIMIT):
        jobs = await engine.inspect.get([bytes.fromhex(job_id) for job_id in taken[at : at + BATCH_LIMIT]])
        assert {job and job.attempts for job in jobs} == {1}


async def test_one_wakes_the_other(url: str, engine: Engine) -> None:
    subscription = await engine.signals.subscribe(ready_topic("q"))
    with child(ENQUEUES, url) as other:
        assert await asyncio.to_thread(other.read) == "open"
        other.go_on()
        signal = await subscription.next(10)
        assert signal is not None
        assert signal.topic == ready_topic("q")
        assert other.end() == 0
