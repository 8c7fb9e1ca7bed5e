"""Timeouts: what is past its time is stopped, and tried again by policy."""

import asyncio
import logging
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tests.logs import warnings_about
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry
from tidemill.task.current import Abort, Aborted, current_job

ONCE = Retry(attempts=1)


@pytest.mark.every_engine
@pytest.mark.row("E4")
async def test_an_async_job_past_its_timeout_is_stopped_and_tried_again(workplace: Workplace) -> None:
    seen: list[Abort | None] = []

    async def hangs_once() -> str:
        if current_job().attempt > 1:
            return "second time"
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(current_job().aborted)
        raise AssertionError

    workplace.task(hangs_once, timeout=0.05, retry=Retry(attempts=2, base=0))
    await workplace.start()
    job_id = await workplace.enqueue("hangs_once", attempts=2)
    await workplace.settled(2)
    job = await workplace.job(job_id)
    assert (job.state, job.result, job.attempts) == (JobState.COMPLETED, b'"second time"', 2)
    (failure,) = job.failures
    assert (failure.kind, failure.error) == ("timeout", "TimeoutError")
    assert "0.05 s" in failure.message
    assert "hangs_once" in failure.traceback
    assert seen == [Abort.TIMEOUT]


async def test_the_last_timeout_is_a_dead_letter(workplace: Workplace) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    workplace.task(hangs, timeout=0.01, retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("hangs", attempts=1)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert job.error.kind == "timeout"


async def test_the_jobs_own_timeout_comes_first_then_the_tasks_then_the_queues(workplace: Workplace) -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    async def hangs_too() -> None:
        await asyncio.Event().wait()

    workplace.task(hangs, timeout=3_600, retry=ONCE)
    workplace.task(hangs_too, retry=ONCE)
    await workplace.queue("hasty", timeout=0.02)
    await workplace.start()
    by_job = await workplace.enqueue("hangs", attempts=1, timeout=10_000)
    by_queue = await workplace.enqueue("hangs_too", attempts=1, queue="hasty")
    await workplace.settled(2)
    for job_id, length in ((by_job, "0.01 s"), (by_queue, "0.02 s")):
        error = (await workplace.job(job_id)).error
        assert error is not None
        assert length in error.message


async def test_a_thread_past_its_timeout_sees_the_flag(workplace: Workplace) -> None:
    def listens() -> None:
        job, never = current_job(), threading.Event()
        while True:
            job.check()
            never.wait(0.01)

    workplace.task(listens, timeout=0.05, retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("listens", attempts=1)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert job.error.kind == "timeout"


async def test_code_that_returns_has_completed_however_late(workplace: Workplace) -> None:
    async def swallows() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "all the same"
        raise AssertionError

    workplace.task(swallows, timeout=0.01)
    await workplace.start()
    job_id = await workplace.enqueue("swallows")
    await workplace.settled()
    assert (await workplace.job(job_id)).state is JobState.COMPLETED


@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_code_that_returns_after_its_timeout_is_mentioned(
    workplace: Workplace, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    def late() -> str:
        while not current_job().aborted:
            threading.Event().wait(0.005)
        return "done"

    async def alate() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        raise AssertionError

    alate.__name__ = "late"
    workplace.task(late if where == "thread" else alate, timeout=0.01)
    await workplace.start()
    job_id = await workplace.enqueue("late")
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.COMPLETED]
    (said,) = [record for record in caplog.records if "past its timeout" in record.getMessage()]
    assert said.levelno == logging.WARNING
    assert "completed, but" in said.getMessage()


async def test_code_that_returns_in_time_is_not_mentioned(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    def quick() -> None: ...

    workplace.task(quick, timeout=3_600)
    await workplace.start()
    job_id = await workplace.enqueue("quick")
    await workplace.settled()
    assert warnings_about(show_id(job_id), caplog) == []


async def test_whatever_comes_out_after_the_timeout_counts_as_the_timeout(workplace: Workplace) -> None:
    async def wraps() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise OSError("connection lost") from error

    workplace.task(wraps, timeout=0.01, retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("wraps", attempts=1)
    await workplace.settled()
    error = (await workplace.job(job_id)).error
    assert error is not None
    assert error.kind == "timeout"
    assert "connection lost" in error.traceback


async def test_aborted_without_a_reason_is_a_failure(workplace: Workplace) -> None:
    async def stops() -> None:
        raise Aborted

    workplace.task(stops, retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("stops", attempts=1)
    await workplace.settled()
    error = (await workplace.job(job_id)).error
    assert error is not None
    assert error.kind == "error"


@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "embedded"])
async def test_a_job_that_ignores_its_timeout_is_stuck_and_holds_its_slot(
    workplace: Workplace, supervised: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a supervisor this process takes no more; without one it goes on with the slots that are left."""
    end, begun = asyncio.Event(), asyncio.Event()

    async def ignores() -> str:
        begun.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    async def quick() -> None: ...

    workplace.task(ignores, timeout=0.02)
    workplace.task(quick)
    worker = await workplace.start(supervised=supervised, stuck_after_s=0.02)
    stuck = await workplace.enqueue("ignores")
    await begun.wait()
    await worker.moments.reached("stuck")
    (row,) = workplace.held_table.rows()
    assert row.deadline_ns > row.started_ns > 0
    other = await workplace.enqueue("quick")
    if supervised:
        worker._unsettled.claim_soon()
        assert worker._claims.request(anyway=True) is None
    else:
        await workplace.settled()
        assert await workplace.states([other]) == [JobState.COMPLETED]
    end.set()
    await workplace.settled(2)
    assert await workplace.states([stuck, other]) == [JobState.COMPLETED, JobState.COMPLETED]
    assert any("does not stop" in record.getMessage() for record in caplog.records)
    assert any(
        "past its timeout" in record.getMessage() and record.levelno == logging.WARNING
        for record in caplog.records
    )


async def test_the_held_table_knows_what_a_timeout_would_mean(workplace: Workplace) -> None:
    started = asyncio.Event()

    async def waits() -> None:
        started.set()
        await asyncio.Event().wait()

    workplace.task(waits, timeout=60, retry=Retry(attempts=2, base=7, backoff="fixed", jitter="none"))
    await workplace.start()
    await workplace.enqueue("waits", attempts=2)
    await started.wait()
    (row,) = workplace.held_table.rows()
    assert row.deadline_ns - row.started_ns == 60 * 10**9
    assert row.retry_in == 7_000_000
