"""Cancel: what has not started never starts, what runs is told to stop, and why."""

import asyncio
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import CancelAnswer, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.task.current import Abort, Aborted, current_job


@pytest.mark.every_engine
@pytest.mark.row("B11", "D9")
async def test_running_async_code_sees_that_it_should_stop(workplace: Workplace) -> None:
    started, checked = asyncio.Event(), asyncio.Event()
    seen: list[Abort | None] = []

    async def listens() -> None:
        started.set()
        await checked.wait()
        seen.append(current_job().aborted)
        current_job().check()

    workplace.task(listens)
    await workplace.start(cancel_grace_s=None)
    job_id = await workplace.enqueue("listens")
    await started.wait()
    assert await workplace.engine.jobs.cancel([job_id]) == [CancelAnswer.ASKED]
    await workplace.heartbeat()
    checked.set()
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.CANCELLED, 0, 0)
    assert seen == [Abort.CANCEL]


@pytest.mark.row("B11", "D9")
async def test_a_running_thread_sees_that_it_should_stop(workplace: Workplace) -> None:
    started = threading.Event()

    def listens() -> None:
        started.set()
        while not current_job().aborted:
            threading.Event().wait(0.005)
        raise Aborted(current_job().aborted or "")

    workplace.task(listens)
    await workplace.start()
    job_id = await workplace.enqueue("listens")
    await asyncio.to_thread(started.wait)
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.CANCELLED]


@pytest.mark.row("B11")
async def test_after_the_grace_async_code_is_cancelled(workplace: Workplace) -> None:
    started = asyncio.Event()
    seen: list[Abort | None] = []

    async def deaf() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(current_job().aborted)

    workplace.task(deaf)
    await workplace.start(cancel_grace_s=0.02)
    job_id = await workplace.enqueue("deaf")
    await started.wait()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.CANCELLED]
    assert seen == [Abort.CANCEL]


async def test_without_a_grace_it_is_never_cancelled_by_force(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def deaf() -> str:
        started.set()
        await end.wait()
        return "done"

    workplace.task(deaf)
    worker = await workplace.start(cancel_grace_s=None)
    job_id = await workplace.enqueue("deaf")
    await started.wait()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    (run,) = worker._slots.active.values()
    assert (run.running.aborted, run.due_ns) == (Abort.CANCEL, 0)
    end.set()
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.COMPLETED]


async def test_a_job_that_fails_after_it_was_asked_is_cancelled_and_keeps_the_error(
    workplace: Workplace,
) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def fails() -> None:
        started.set()
        await end.wait()
        raise ValueError("on the way out")

    workplace.task(fails, retry=Retry(attempts=5))
    await workplace.start(cancel_grace_s=None)
    job_id = await workplace.enqueue("fails")
    await started.wait()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    end.set()
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.state is JobState.CANCELLED
    assert job.error is not None
    assert job.error.message == "on the way out"


@pytest.mark.every_engine
@pytest.mark.row("B11")
async def test_what_waits_in_the_buffer_never_starts(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    async def blocks(number: int) -> None:
        ran.append(number)
        started.set()
        await end.wait()

    workplace.task(blocks)
    worker = await workplace.start(slots=1)
    workplace.claim_ahead(1)
    first, second = [await workplace.enqueue("blocks", number) for number in (1, 2)]
    await started.wait()
    await worker.moments.reached("claimed", 2)
    await workplace.engine.jobs.cancel([second])
    await workplace.heartbeat()
    end.set()
    await workplace.settled(2)
    assert await workplace.states([first, second]) == [JobState.COMPLETED, JobState.CANCELLED]
    assert ran == [1]


async def test_being_asked_again_changes_nothing(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def deaf() -> None:
        started.set()
        await end.wait()

    workplace.task(deaf)
    worker = await workplace.start(cancel_grace_s=3_600.0)
    job_id = await workplace.enqueue("deaf")
    await started.wait()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    (run,) = worker._slots.active.values()
    grace_ns = run.grace_ns
    await workplace.heartbeat()
    assert run.grace_ns == grace_ns > 0
    end.set()
    await workplace.settled()
