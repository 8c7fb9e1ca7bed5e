"""`job.info()`: what is known of a job, as people read it. Handles are alike on every engine: one will do."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.app.claimer import Hand, with_hand
from tidemill import JobState, Retry, Tidemill, UnknownJob, current_job
from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.run import Failed

DAY = date(2026, 11, 18)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Tidemill]:
    made = Tidemill(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield made
    made.close()


def test_a_job_that_waits_shows_datetimes_and_decoded_values(app: Tidemill) -> None:
    @app.task(name="book", queue="q", timeout=30, key="guest")
    def book(day: date, *, guest: str = "nobody") -> date:
        return day

    at = datetime.now(UTC) + timedelta(hours=1)
    job = book.using(at=at, tags=["a", "b"], priority=2, expires=7200).enqueue(DAY, guest="ada")
    info = job.info()
    assert (info.id, info.task, info.queue, info.priority, info.key) == (job.id, "book", "q", 2, "ada")
    assert (info.state, info.attempts, info.max_attempts) == (JobState.SCHEDULED, 0, 5)
    assert (info.args, info.kwargs, info.tags) == ((DAY,), {"guest": "ada"}, ("a", "b"))
    assert (info.due_at, info.timeout) == (at, timedelta(seconds=30))
    assert info.expires_at == info.created_at + timedelta(hours=2)
    assert info.created_at.tzinfo is UTC
    assert abs(info.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert (info.result, info.error, info.failures, info.started_at) == (None, None, (), None)
    assert job.state is JobState.SCHEDULED
    elsewhere = Tidemill(app.url).job(job.id).info()  # without the code: as JSON has it
    assert (elsewhere.args, elsewhere.kwargs) == ((DAY.isoformat(),), {"guest": "ada"})


def test_attempts_are_counted_as_in_the_logs(app: Tidemill) -> None:
    """1 while the first one runs, and still 1 when it has failed."""

    @app.task(name="t", retry=Retry(attempts=6))
    def task() -> None: ...

    job = task.enqueue()

    async def fail(hand: Hand) -> None:
        (run,) = await hand.take("default")
        seen.append((await job.ainfo()).attempts)
        failure = Failure(error="OSError", message="no", traceback="...")
        await hand.settle(run, Failed(failure=failure, retry_in=60_000_000))

    seen: list[int] = []
    asyncio.run(with_hand(app, fail))
    info = job.info()
    assert (seen, info.attempts, info.max_attempts) == ([1], 1, 6)
    assert info.error is not None
    assert (info.error.kind, info.error.error, info.error.attempt) == ("error", "OSError", 1)
    assert info.error.retry_in == timedelta(minutes=1)
    assert info.error.ended_at is not None
    assert info.failures == (info.error,)
    assert info.error.claimed_at == info.claimed_at


async def test_a_job_that_completed_in_the_end_shows_its_result_and_no_error(app: Tidemill) -> None:
    @app.task(name="t", retry=Retry(attempts=3, base=0))
    async def task(day: date) -> date:
        current_job().progress(1, total=2)
        if current_job().attempt == 1:
            raise OSError("once")
        return day + timedelta(days=1)

    async with app.worker():
        job = await task.aenqueue(DAY)
        await job.aresult(timeout=30)
    info = await job.ainfo()
    assert (info.state, info.result, info.error) == (JobState.COMPLETED, date(2026, 11, 19), None)
    assert (info.attempts, [failure.message for failure in info.failures]) == (2, ["once"])
    assert info.progress == {"done": 1, "total": 2, "message": ""}
    assert info.ended_at is not None
    assert info.started_at is not None
    assert info.started_at <= info.ended_at
    await app.aclose()


def test_an_unknown_job_has_no_info(app: Tidemill) -> None:
    with pytest.raises(UnknownJob):
        app.job("ab" * 16).info()
