"""`raise RetryAfter(...)` and `raise Snooze(...)`: later, from inside a task."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import MINUTE, SECOND
from tidemill.task.later import RetryAfter, Snooze


def on_loop(act: Callable[[], None]) -> Callable[[], Any]:
    async def works() -> None:
        act()

    return works


def in_thread(act: Callable[[], None]) -> Callable[[], Any]:
    def works() -> None:
        act()

    return works


WAYS = pytest.mark.parametrize("way", [pytest.param(on_loop, marks=pytest.mark.every_engine), in_thread])


def wait_of(job: JobRecord) -> int:
    """From the end of its run to its due time, about."""
    assert job.due_at is not None
    assert job.claimed_at is not None
    return job.due_at - job.claimed_at


@WAYS
async def test_retry_after_uses_an_attempt_and_waits_as_it_says(workplace: Workplace, way: Any) -> None:
    def act() -> None:
        raise RetryAfter(timedelta(minutes=1), "429") from OSError("too many requests")

    workplace.task(way(act), retry=Retry(attempts=2, on="shop.Declined"))  # the policy's `on` is not asked
    await workplace.start()
    job_id = await workplace.enqueue("works", attempts=2)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count, job.snoozes) == (JobState.SCHEDULED, 1, 1, 0)
    assert MINUTE <= wait_of(job) < 2 * MINUTE
    assert job.error is not None
    assert job.error.message == "429 (asked for a wait of 60 s)"
    assert "OSError: too many requests" in job.error.traceback


@WAYS
async def test_retry_after_in_the_last_attempt_is_the_end(workplace: Workplace, way: Any) -> None:
    def act() -> None:
        raise RetryAfter(0)

    workplace.task(way(act))
    await workplace.start()
    job_id = await workplace.enqueue("works", attempts=2)
    await workplace.settled(2)
    job = await workplace.job(job_id)
    assert (job.state, job.attempts) == (JobState.DEAD, 2)


@WAYS
async def test_a_snooze_uses_no_attempt(workplace: Workplace, way: Any) -> None:
    def act() -> None:
        raise Snooze(60)

    workplace.task(way(act))
    await workplace.start()
    job_id = await workplace.enqueue("works")
    await workplace.released()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.SCHEDULED, 0, 0)
    assert (job.snoozes, job.reason) == (1, "snooze")
    assert MINUTE <= wait_of(job) < 2 * MINUTE
    assert workplace.held() == 0


@WAYS
async def test_a_job_snoozes_until_its_time_has_come(workplace: Workplace, way: Any) -> None:
    calls: list[int] = []

    def act() -> None:
        calls.append(1)
        if len(calls) < 4:
            raise Snooze(0)

    workplace.task(way(act))
    await workplace.start()
    job_id = await workplace.enqueue("works")
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.attempts_begun, job.snoozes) == (JobState.COMPLETED, 1, 3)


@pytest.mark.every_engine
async def test_a_job_that_snoozes_too_often_fails_and_says_so(workplace: Workplace) -> None:
    """The call's policy wins over the task's."""

    async def works() -> None:
        raise Snooze(0)

    workplace.task(works, retry=Retry(snoozes=50))
    await workplace.start()
    job_id = await workplace.enqueue("works", attempts=1, retry=Retry(attempts=1, snoozes=2))
    await workplace.settled()
    job = await workplace.job(job_id)
    assert (job.state, job.snoozes, job.attempts) == (JobState.DEAD, 2, 1)
    assert job.error is not None
    assert job.error.error == "tidemill.model.errors.SnoozesUsedUp"
    assert "snoozed 2 times already: Retry(snoozes=2) allows no more" in job.error.message


async def test_the_task_and_the_queue_may_say_how_often(workplace: Workplace) -> None:
    async def works() -> None:
        raise Snooze(0)

    async def others() -> None:
        raise Snooze(0)

    workplace.task(works, retry=Retry(attempts=1, snoozes=1))
    workplace.task(others, retry=None)
    await workplace.queue("narrow", retry=Retry(attempts=1, snoozes=3))
    await workplace.start(queues=("default", "narrow"))
    by_task = await workplace.enqueue("works", attempts=1)
    by_queue = await workplace.enqueue("others", attempts=1, queue="narrow")
    await workplace.settled(2)
    assert [(await workplace.job(job)).snoozes for job in (by_task, by_queue)] == [1, 3]


async def test_a_job_that_snoozes_past_its_expiry_is_dead(workplace: Workplace) -> None:
    async def works() -> None:
        raise Snooze(3_600)

    workplace.task(works)
    await workplace.start()
    job_id = await workplace.enqueue("works", expires=10 * SECOND)
    await workplace.released()
    await workplace.engine.jobs.promote(now=await workplace.engine.now() + MINUTE)
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert job.error.kind == "expired"


async def test_a_snooze_in_a_drain_is_not_handed_back(workplace: Workplace) -> None:
    """It was the job's own wish: the worker has nothing to report."""

    async def works() -> None:
        workplace.worker.drain(None)
        raise Snooze(60)

    workplace.task(works)
    await workplace.start()
    job_id = await workplace.enqueue("works")
    drained = await workplace.over()
    assert (drained.finished, drained.released) == (0, 0)
    assert (await workplace.job(job_id)).snoozes == 1


@pytest.mark.parametrize("later", [RetryAfter, Snooze])
@pytest.mark.parametrize("wrong", [-1, "soon", float("nan"), None, True])
def test_a_time_that_is_none_is_refused_where_it_is_raised(later: Any, wrong: Any) -> None:
    with pytest.raises(BadInput, match="a length of time"):
        later(wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", 10**9])
def test_a_number_of_snoozes_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput, match="snoozes"):
        Retry(snoozes=wrong)
