"""How runs end, on the loop and in threads alike."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry

ONCE = Retry(attempts=1)
AT_ONCE = Retry(attempts=3, base=0, jitter="none")

Raise = Callable[[BaseException], Any]


@pytest.fixture(params=["loop", "thread"])
def runs_in(request: pytest.FixtureRequest) -> str:
    where: str = request.param
    return where


def either(runs_in: str, body: Callable[[], Any]) -> Callable[[], Any]:
    """A task that does this, as `async def` or as `def`."""
    if runs_in == "thread":

        def task() -> Any:
            return body()

        return task

    async def atask() -> Any:
        return body()

    atask.__name__ = "task"
    return atask


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def body() -> NoReturn:
        raise error

    return body


async def test_a_value_that_is_returned_is_the_result(workplace: Workplace, runs_in: str) -> None:
    workplace.task(either(runs_in, lambda: {"answer": 42}))
    await workplace.start()
    job_id = await workplace.enqueue("task")
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.result, job.attempts) == (JobState.COMPLETED, b'{"answer":42}', 1)
    assert job.started_at is not None
    assert workplace.held() == 0


async def test_arguments_arrive(workplace: Workplace) -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    workplace.task(add)
    await workplace.start()
    job_id = await workplace.enqueue("add", 40, 2)
    await workplace.settled()
    assert (await workplace.job(job_id)).result == b"42"


async def test_a_failure_is_tried_again_until_it_succeeds(workplace: Workplace, runs_in: str) -> None:
    calls: list[int] = []

    def twice_wrong() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("not yet")
        return "done"

    workplace.task(either(runs_in, twice_wrong), retry=AT_ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=3)
    await workplace.settled(3)
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.COMPLETED, 3, 2)
    assert [failure.error for failure in job.failures] == ["OSError", "OSError"]


@pytest.mark.every_engine
async def test_the_last_failure_is_a_dead_letter_with_its_traceback(
    workplace: Workplace, runs_in: str
) -> None:
    workplace.task(either(runs_in, raising(ValueError("wrong address"))), retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert (job.error.kind, job.error.error, job.error.message) == ("error", "ValueError", "wrong address")
    assert "raise error" in job.error.traceback
    assert "tidemill/worker" not in job.error.traceback


async def test_the_jobs_own_maximum_counts(workplace: Workplace) -> None:
    workplace.task(either("loop", raising(OSError())), retry=Retry(attempts=100, base=0))
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=2)
    await workplace.settled(2)
    assert (await workplace.job(job_id)).state is JobState.DEAD


async def test_what_the_policy_gives_up_on_is_not_tried_again(workplace: Workplace) -> None:
    workplace.task(either("loop", raising(ValueError())), retry=Retry(attempts=5, give_up=(ValueError,)))
    await workplace.start()
    job_id = await workplace.enqueue("task")
    await workplace.settled()
    assert (await workplace.job(job_id)).state is JobState.DEAD


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        BaseException("bare"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_no_exception_of_a_task_ends_the_worker(
    workplace: Workplace, runs_in: str, error: BaseException
) -> None:
    workplace.task(either(runs_in, raising(error)), retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert job.error.kind == "error"
    assert job.error.error == type(error).__name__


async def test_sys_exit_in_a_task_is_its_failure(workplace: Workplace, runs_in: str) -> None:
    workplace.task(either(runs_in, lambda: sys.exit("bye")), retry=ONCE)
    await workplace.start()
    first = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    second = await workplace.enqueue("task", attempts=1)
    await workplace.settled(2)
    assert await workplace.states([first, second]) == [JobState.DEAD, JobState.DEAD]


async def test_endless_recursion_is_a_failure(workplace: Workplace, runs_in: str) -> None:
    def deeper() -> Any:
        return deeper()

    workplace.task(either(runs_in, deeper), retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    error = (await workplace.job(job_id)).error
    assert error is not None
    assert error.error == "RecursionError"


async def test_work_that_was_done_is_not_done_again_for_its_result(
    workplace: Workplace, runs_in: str
) -> None:
    workplace.task(either(runs_in, lambda: datetime.now(UTC)), retry=AT_ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=3)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.DEAD, 1, 1)
    assert job.error is not None
    assert job.error.kind == "payload"
    assert "the result of task, a datetime.datetime: " in job.error.message


async def test_nor_for_a_result_that_is_too_large(workplace: Workplace) -> None:
    workplace.task(either("loop", lambda: "x" * (1 << 21)), retry=AT_ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=3)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts) == (JobState.DEAD, 1)
    assert job.error is not None
    assert job.error.error.endswith("ResultTooLarge")


async def test_nor_for_one_of_a_run_that_was_told_to_stop(workplace: Workplace) -> None:
    """It ran into its timeout, did its work all the same, and returned what cannot be stored."""

    async def task() -> object:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return object()

    workplace.task(task, retry=AT_ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=3, timeout=10_000)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts) == (JobState.DEAD, 1)
    assert job.error is not None
    assert job.error.kind == "payload"


async def test_a_cancelled_error_of_its_own_is_a_failure(workplace: Workplace) -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    async def awaits_a_cancelled_task() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner

    workplace.task(cancels_itself, retry=ONCE)
    workplace.task(awaits_a_cancelled_task, retry=ONCE)
    await workplace.start()
    ids = [
        await workplace.enqueue(name, attempts=1) for name in ("cancels_itself", "awaits_a_cancelled_task")
    ]
    await workplace.settled(2)
    for job_id in ids:
        job = await workplace.job(job_id)
        assert job.state is JobState.DEAD
        assert job.error is not None
        assert (job.error.kind, job.error.error) == ("error", "asyncio.exceptions.CancelledError")


async def test_an_exception_that_cannot_be_shown_is_still_a_failure(workplace: Workplace) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    workplace.task(either("thread", raising(Broken())), retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    assert (await workplace.job(job_id)).state is JobState.DEAD


@pytest.mark.every_engine
async def test_a_message_with_lone_surrogates_is_stored(workplace: Workplace) -> None:
    workplace.task(either("loop", raising(OSError("file \udcff"))), retry=ONCE)
    await workplace.start()
    job_id = await workplace.enqueue("task", attempts=1)
    await workplace.settled()
    assert (await workplace.job(job_id)).state is JobState.DEAD
