"""Due times are met by a timer in the worker: no safety poll, no signal and no controller helps here."""

import asyncio
from statistics import median

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.time import HOUR, SECOND, span_of

CEILING_S = 2.0
"""Generous: how exact it is on an idle machine is measured by the benchmark."""
NEVER_S = 3_600.0
BURST = 10_000
OTHERS = 5


@pytest.mark.every_engine
@pytest.mark.row("A2")
async def test_a_delayed_job_starts_when_it_is_due(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    await workplace.start(poll_s=NEVER_S, slots=20)
    await workplace.idle()
    await workplace.enqueue("works", delay=HOUR)  # a timer that the earlier ones have to replace
    ids = [await workplace.enqueue("works", delay=span_of(0.2 + 0.03 * n)) for n in range(20)]
    await workplace.settled(20)
    late = []
    for job in [await workplace.job(job_id) for job_id in ids]:
        assert job.due_at is not None
        assert job.claimed_at is not None
        late.append((job.claimed_at - job.due_at) / SECOND)
    print(f"late by {1e3 * median(late):.1f} ms, at most {1e3 * max(late):.1f} ms")
    assert min(late) >= 0, "never too early"
    assert max(late) < CEILING_S


@pytest.mark.every_engine
@pytest.mark.row("A2", "A3")
async def test_ten_thousand_due_at_once_do_not_starve_another_queue(workplace: Workplace) -> None:
    begun, ran, done = asyncio.Event(), asyncio.Event(), 0

    async def of_the_burst() -> None:
        nonlocal done
        done += 1
        begun.set()

    async def other() -> None:
        ran.set()

    workplace.task(of_the_burst)
    workplace.task(other)
    await workplace.start(poll_s=NEVER_S, slots=20, queues=("default", "other"))
    await workplace.idle()
    at = await workplace.engine.now() + 3 * SECOND
    for _ in range(BURST // 1_000):
        await workplace.enqueue_many("of_the_burst", times=1_000, at=at)
    await begun.wait()
    waits = []
    for _ in range(OTHERS):  # one after the other, while the burst is under way
        before = done
        ran.clear()
        await workplace.enqueue("other", queue="other")
        await ran.wait()
        waits.append(done - before)
    assert done < BURST, "the others did not wait for its end"
    await workplace.settled(BURST + OTHERS)
    print(f"of the burst, {median(waits):.0f} ran until another job did, at most {max(waits)}")
    assert done == BURST, "each of them once"
