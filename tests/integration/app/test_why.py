"""`job.why()`: why it is not running. Handles are alike on every engine: one will do."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidemill import ReasonKind, Task, Tidemill, UnknownJob
from tidemill.model.ids import new_id, show_id


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Tidemill]:
    made = Tidemill(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield made
    made.close()


def task_of(app: Tidemill) -> Task[[], None]:
    @app.task(name="send", queue="email")
    def send() -> None: ...

    return send


@pytest.mark.row("F6")
def test_a_job_says_why_it_waits_and_until_when(app: Tidemill) -> None:
    job = task_of(app).using(delay=60).enqueue()
    first, second = job.why()
    assert (first.kind, first.since, first.by, first.holders) == (ReasonKind.NOT_DUE, None, "", ())
    assert first.until is not None
    assert abs(first.until - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=30)
    assert second.kind is ReasonKind.NO_WORKER
    assert [(each.what, each.name) for each in second.opens] == [("queue", "email")]
    assert job.state is None, "asking why is not asking for the state"


@pytest.mark.row("F6")
async def test_async_code_asks_too_and_sees_a_pause(app: Tidemill) -> None:
    job = await task_of(app).aenqueue()
    await app.queues.apause("email", why="a deploy")
    paused = (await job.awhy())[0]
    assert (paused.kind, paused.why) == (ReasonKind.PAUSED, "a deploy")
    assert paused.since is not None
    assert paused.since.tzinfo is UTC


def test_a_job_that_is_not_there_has_no_reason(app: Tidemill) -> None:
    with pytest.raises(UnknownJob):
        app.job(show_id(new_id())).why()
