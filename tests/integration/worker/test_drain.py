"""The end of a worker: it takes no more, lets finish what runs, and hands back what does not."""

import asyncio
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import JobState
from tidemill.task.current import Abort, current_job


@pytest.mark.every_engine
@pytest.mark.row("A12")
async def test_a_drain_takes_no_more_and_lets_finish_what_runs(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()
    aborted: list[object] = []

    async def works() -> str:
        started.set()
        await end.wait()
        aborted.append(current_job().aborted)
        return "done"

    workplace.task(works)
    worker = await workplace.start(slots=2)
    first = await workplace.enqueue("works")
    await started.wait()
    worker.drain(None)
    later = await workplace.enqueue("works")
    worker._unsettled.claim_soon()
    end.set()
    drained = await workplace.over()
    assert (drained.finished, drained.released) == (1, 0)
    assert await workplace.states([first, later]) == [JobState.COMPLETED, JobState.READY]
    assert aborted == [None]
    assert workplace.held() == 0


@pytest.mark.row("A12")
async def test_an_idle_worker_drains_at_once(workplace: Workplace) -> None:
    await workplace.start()
    await workplace.idle()
    drained = await workplace.drained(None)
    assert (drained.finished, drained.released) == (0, 0)


async def test_a_worker_that_was_told_to_drain_before_it_began_ends(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    job_id = await workplace.enqueue("works")
    worker = await workplace.start()
    worker.drain(30)
    await workplace.over()
    assert await workplace.states([job_id]) == [JobState.READY]


@pytest.mark.every_engine
@pytest.mark.row("B7", "D9")
async def test_at_the_deadline_async_code_is_cancelled_and_released(workplace: Workplace) -> None:
    started = asyncio.Event()
    seen: list[Abort | None] = []

    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(current_job().aborted)

    workplace.task(endless)
    await workplace.start()
    job_id = await workplace.enqueue("endless")
    await started.wait()
    before = await workplace.job(job_id)
    drained = await workplace.drained(0.02)
    assert (drained.finished, drained.released) == (0, 1)
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.READY, 0, 0)
    assert job.seq == before.seq
    assert seen == [Abort.DRAIN]


@pytest.mark.row("B7")
async def test_hurry_makes_the_deadline_now(workplace: Workplace) -> None:
    started = asyncio.Event()

    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    workplace.task(endless)
    worker = await workplace.start()
    job_id = await workplace.enqueue("endless")
    await started.wait()
    worker.drain(3_600)
    worker.hurry()
    drained = await workplace.over()
    assert drained.released == 1
    assert await workplace.states([job_id]) == [JobState.READY]


@pytest.mark.row("B7", "D9")
async def test_a_thread_that_stops_on_the_drains_flag_is_released(workplace: Workplace) -> None:
    started = threading.Event()

    def listens() -> None:
        started.set()
        while True:
            current_job().check()
            threading.Event().wait(0.005)

    workplace.task(listens)
    await workplace.start()
    job_id = await workplace.enqueue("listens")
    await asyncio.to_thread(started.wait)
    drained = await workplace.drained(0)
    assert drained.released == 1
    job = await workplace.job(job_id)
    assert (job.state, job.attempts) == (JobState.READY, 0)


async def test_a_thread_that_does_not_stop_stays_in_the_held_table_until_its_process_has_ended(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.worker.DRAIN_GRACE_S", 0.02)
    started, end = threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        end.wait()

    workplace.task(deaf)
    worker = await workplace.start()
    job_id = await workplace.enqueue("deaf")
    await asyncio.to_thread(started.wait)
    drained = await workplace.drained(0)
    assert (drained.finished, drained.released, worker.running) == (0, 0, 1)
    assert await workplace.states([job_id]) == [JobState.RUNNING]
    assert workplace.held() == 1
    assert await workplace.engine.jobs.retire(workplace.claimant) == 1  # what its supervisor does then
    assert await workplace.states([job_id]) == [JobState.READY]
    end.set()


async def test_async_code_that_ignores_the_deadline_is_left_behind(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.worker.DRAIN_GRACE_S", 0.02)
    started, end = asyncio.Event(), asyncio.Event()

    async def deaf() -> None:
        started.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue

    workplace.task(deaf)
    worker = await workplace.start()
    job_id = await workplace.enqueue("deaf")
    await started.wait()
    await workplace.drained(0)
    assert worker.running == 1
    assert await workplace.states([job_id]) == [JobState.RUNNING]
    end.set()
    (run,) = worker._slots.active.values()
    assert run.handle is not None
    await run.handle
    assert worker.running == 0


async def test_what_waits_in_the_buffer_is_released_at_once(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def works() -> None:
        started.set()
        await end.wait()

    workplace.task(works)
    worker = await workplace.start(slots=1)
    first = await workplace.enqueue("works")
    await started.wait()
    workplace.claim_ahead(1)
    second = await workplace.enqueue("works")
    await worker.moments.reached("claimed", 2)
    assert workplace.held() == 2
    worker.drain(None)
    await workplace.released()
    assert await workplace.states([first, second]) == [JobState.RUNNING, JobState.READY]
    end.set()
    drained = await workplace.over()
    assert (drained.finished, drained.released) == (1, 0), "it had not begun: nothing was interrupted"


@pytest.mark.every_engine
@pytest.mark.row("B7")
async def test_a_burst_is_handed_back_whole(workplace: Workplace) -> None:
    """Everything is either completed or ready again; nothing is left with the worker."""

    async def works() -> None:
        await asyncio.sleep(0)

    workplace.task(works)
    worker = await workplace.start(slots=20)
    ids = await workplace.enqueue_many("works", times=1_000)
    await worker.moments.reached("settled", 50)
    await workplace.drained(0)
    assert set(await workplace.states(ids)) <= {JobState.COMPLETED, JobState.READY}
    assert workplace.held() == 0


async def test_a_job_that_ends_while_it_is_being_drained_is_settled(workplace: Workplace) -> None:
    started = asyncio.Event()

    async def returns_on_cancel() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished quickly"
        raise AssertionError

    workplace.task(returns_on_cancel)
    await workplace.start()
    job_id = await workplace.enqueue("returns_on_cancel")
    await started.wait()
    drained = await workplace.drained(0)
    assert (drained.finished, drained.released) == (1, 0)
    assert await workplace.states([job_id]) == [JobState.COMPLETED]
