"""New jobs that wait for others: what they were when they were stored, however late their producer knows."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.integration.events.conftest import Open, Process
from tests.integration.events.held import a_held
from tests.integration.events.reading import new_jobs, read, states_of, take
from tidemill import JobState, Tidemill, UnknownJob
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import Failure, NewJob
from tidemill.model.jobs.run import Completed, Failed, Settlement

BLOCKED, READY, RUNNING, CANCELLED = JobState.BLOCKED, JobState.READY, JobState.RUNNING, JobState.CANCELLED


async def end(worker: Process, number: int, good: NewJob, bad: NewJob) -> None:
    """Take both; one completes, the other does not."""
    runs = {job.id: job.fence for job in await take(worker, number)}
    assert set(runs) == {good.id, bad.id}
    failed = Failed(failure=Failure(message="no"))
    outcomes: list[tuple[NewJob, Any]] = [(good, Completed()), (bad, failed)]
    await worker.engine.jobs.settle(
        [Settlement(id=job.id, fence=runs[job.id], outcome=outcome) for job, outcome in outcomes]
    )


async def stored(app: Tidemill, *jobs: NewJob) -> None:
    """The engine has these jobs; their producer does not know yet."""
    for job in jobs:
        while True:
            try:
                await app.job(show_id(job.id)).ainfo()
                break
            except UnknownJob:
                await asyncio.sleep(0.01)  # no signal says when a job is stored


def child_of(parent: NewJob) -> NewJob:
    return msgspec.structs.replace(new_jobs(1)[0], after=(parent.id,))


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_a_child_whose_parent_ends_before_it_is_emitted_was_blocked(
    app: Tidemill, open_process: Open
) -> None:
    """Whoever ended the parent emits the rest, so the producer must not emit that as well."""
    producer, turns = await a_held(open_process)
    worker, [good, bad] = await open_process(), new_jobs(2)
    child, orphan = child_of(good), child_of(bad)
    async with app.events() as events:
        await producer.engine.jobs.enqueue([good, bad])
        await read(events, 2)
        turns["enqueue answered"] = asyncio.Event()
        enqueued = asyncio.create_task(producer.engine.jobs.enqueue([child, orphan]))
        await stored(app, child, orphan)
        await end(worker, 1, good, bad)
        found = await read(events, 2 + 2 + 2)
        assert [states_of(found, job.id) for job in (child, orphan)] == [[READY], [CANCELLED]]
        turns["enqueue answered"].set()
        await enqueued
        found = await read(events, 2)
        assert [states_of(found, job.id) for job in (child, orphan)] == [[BLOCKED], [BLOCKED]]


@pytest.mark.row("C2")
async def test_a_child_of_ended_parents_never_was_blocked(app: Tidemill, open_process: Open) -> None:
    """Also when it runs already, and has ended, before it is emitted."""
    producer, turns = await a_held(open_process)
    worker, [good, bad] = await open_process(), new_jobs(2)
    child, cancelled, orphan = child_of(good), child_of(good), child_of(bad)
    await producer.engine.jobs.enqueue([good, bad])
    await end(worker, 1, good, bad)
    async with app.events() as events:
        turns["enqueue answered"] = asyncio.Event()
        enqueued = asyncio.create_task(producer.engine.jobs.enqueue([child, cancelled, orphan]))
        await stored(app, child, cancelled, orphan)
        await worker.engine.jobs.cancel([cancelled.id])
        assert [run.id for run in await take(worker, 2)] == [child.id]
        found = await read(events, 2)
        assert [states_of(found, job.id) for job in (child, cancelled)] == [[RUNNING], [CANCELLED]]
        turns["enqueue answered"].set()
        await enqueued
        found = await read(events, 3)
        emitted = [states_of(found, job.id) for job in (child, cancelled, orphan)]
    assert emitted == [[READY], [READY], [CANCELLED]]
