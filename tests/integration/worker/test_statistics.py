"""What a worker counts: how long jobs waited, by the engine's clock, and how long runs took."""

import asyncio

import pytest

from tests.integration.worker.workplace import QUEUE, Workplace
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.stats.batch import OTHER_TASKS, TASKS_KEPT, StatsRow
from tidemill.model.stats.histogram import Histogram, bucket_of, run_of, unpack, wait_of
from tidemill.model.time import MILLISECOND, SECOND
from tidemill.task.later import Snooze


def times(rows: list[StatsRow]) -> dict[str, tuple[Histogram, Histogram]]:
    assert {row.queue for row in rows} <= {QUEUE}
    return {row.task: (wait_of(dict(unpack(row.packed))), run_of(dict(unpack(row.packed)))) for row in rows}


@pytest.mark.every_engine
async def test_waiting_times_are_the_engines_and_run_times_the_workers(workplace: Workplace) -> None:
    async def works(length: float) -> None:
        await asyncio.sleep(length)

    def fails() -> None:
        raise OSError

    workplace.task(works)
    workplace.task(fails)
    began = await workplace.engine.now() - 10 * SECOND
    jobs = [NewJob(id=new_id(), task="works", queue=QUEUE, body=b"[[0.05], {}]") for _ in range(2)]
    jobs.append(NewJob(id=new_id(), task="fails", queue=QUEUE, body=b"[[], {}]", attempts=1))
    await workplace.engine.jobs.enqueue(jobs, now=began)
    worker = await workplace.start()
    await workplace.settled(3)
    waited = await workplace.engine.now() - began
    found = times(worker.take_statistics())
    for task, count in (("works", 2), ("fails", 1)):
        wait, run = found[task]
        assert (wait.count, run.count) == (count, count)
        assert bucket_of(10 * SECOND) <= min(wait.counts)
        assert max(wait.counts) <= bucket_of(waited)
    assert min(found["works"][1].counts) >= bucket_of(50 * MILLISECOND)
    assert worker.take_statistics() == []


async def test_every_claim_counts_and_only_what_ran(workplace: Workplace) -> None:
    """A snooze is released: it waits anew, and has not ended. What is not known here does not run."""
    snoozed: list[int] = []

    async def works() -> None:
        if not snoozed:
            snoozed.append(1)
            raise Snooze(0)

    workplace.task(works)
    worker = await workplace.start()
    await workplace.enqueue("works")
    await workplace.enqueue("nobody.knows")
    await workplace.released(2)
    await workplace.settled()
    found = times(worker.take_statistics())
    assert [each.count for each in found["works"]] == [2, 1]
    assert [each.count for each in found["nobody.knows"]] == [1, 0]


async def test_many_tasks_are_bounded(workplace: Workplace) -> None:
    worker = await workplace.start(slots=400)
    for n in range(2 * TASKS_KEPT):
        await workplace.enqueue(f"t{n}")
    await workplace.released(2 * TASKS_KEPT)
    found = times(worker.take_statistics())
    assert len(found) == TASKS_KEPT + 1
    assert found[OTHER_TASKS][0].count == TASKS_KEPT
