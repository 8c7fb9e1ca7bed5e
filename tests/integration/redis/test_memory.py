"""What Redis keeps of finished jobs by itself, and what a job takes."""

import pytest

from tests.integration.redis.conftest import Command
from tidemill.engines.redis.engine import RedisEngine
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import Claimant, a_job, configure

KEPT = 10_000


@pytest.mark.row("C6")
async def test_ten_thousand_completed_jobs_a_queue_are_kept(engine: RedisEngine, claimant: Claimant) -> None:
    clock = claimant.clock
    assert engine.keeps.count == KEPT
    for _ in range(11):
        await engine.jobs.enqueue([a_job() for _ in range(1_000)], now=clock.now)
        await claimant.complete(*await claimant.take(most=1_000))
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert counts.completed == KEPT + 1_000
    while (await engine.jobs.prune(now=clock.now)).more:
        pass
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.completed, counts.window.completed) == (KEPT, KEPT + 1_000)


async def test_nothing_of_a_job_is_left_when_it_goes(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    """Whatever happened to it: the keys that remain are those of an empty namespace."""
    clock = claimant.clock

    async def live(options: QueueOptions) -> None:
        await configure(engine, "q", options, now=clock.now)
        jobs = [a_job(key=f"k{n}", delay=n % 2) for n in range(20)]
        await engine.jobs.enqueue(jobs, now=clock.now)
        clock.forward(1)
        await claimant.heartbeat()
        for run in await claimant.take(most=20):
            await claimant.complete(run)
        clock.forward(200_000)
        await claimant.heartbeat()
        while (await engine.jobs.prune(now=clock.now)).more:
            pass

    def names() -> list[bytes]:
        return sorted(part for part in command("KEYS", "*").split(b"\r\n") if part.startswith(b"{"))

    await live(QueueOptions())
    before = names()
    await live(QueueOptions())
    assert [name for name in names() if b"/min" not in name and b":min" not in name] == [
        name for name in before if b"/min" not in name and b":min" not in name
    ]
    assert command("HLEN", "{tidemill}:job") == b":0\r\n"
    assert command("HLEN", "{tidemill}:body") == b":0\r\n"
