"""A worker process is killed around the commit of a job that completes itself: the rows of the user and the
outcome are both there, once, or the job runs again."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.integration.supervisor.conftest import StartGroup, start_groups
from tests.integration.supervisor.groups import QUEUE, enqueue, finished
from tests.integration.transactions import complete_app
from tidemill.engine.registry import connect as open_engine
from tidemill.model.ids import JobId, new_id, show_id
from tidemill.model.jobs.job import JobState, NewJob

JOBS = 6
TASKS = ("in_thread", "in_process", "on_loop")


@pytest.fixture(params=["sqlite-file", "postgres-server"])  # those that take part in a user's transaction
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def group(url: str, tmp_path: Path) -> Iterator[StartGroup]:
    yield from start_groups(url, tmp_path)


def a_job(task: str, *args: str) -> NewJob:
    return NewJob(id=new_id(), task=task, queue=QUEUE, body=msgspec.json.encode([args, {}]))


@pytest.mark.row("B14", "F7", "A4")
@pytest.mark.parametrize("task", TASKS)
async def test_killed(url: str, group: StartGroup, tmp_path: Path, task: str) -> None:
    """At one point after the other, in one group: each time other jobs run beside the one that dies."""
    engine = await open_engine(url)
    own = complete_app.connect(url)
    own.execute("CREATE TABLE IF NOT EXISTS job_orders (job text)")
    own.execute("DELETE FROM job_orders")
    own.commit()
    name = f"{complete_app.__name__}.{task}"
    one = await group(slots=2, app=f"{complete_app.__name__}:app").ready()
    ids: list[JobId] = []
    for point in complete_app.POINTS:
        dying = a_job(name, url, str(tmp_path), point)
        others = [a_job(name, url, str(tmp_path), "nowhere") for _ in range(JOBS)]
        ids += await enqueue(engine, *others[:3], dying, *others[3:])
        jobs = await finished(engine, ids)
        assert [job.state for job in jobs] == [JobState.COMPLETED] * len(ids)
        assert {job.result for job in jobs} == {msgspec.json.encode("stored")}
        rows = Counter(row[0] for row in own.execute("SELECT job FROM job_orders").fetchall())
        own.commit()
        assert len(rows) == len(ids), f"{point}: every job left its row"
        assert set(rows.values()) == {1}, f"{point}: and none did twice"
        assert (tmp_path / f"died {show_id(dying.id)}").exists()
        (record,) = await engine.inspect.get([dying.id])
        assert record is not None
        assert record.attempts == 1
        if point == "after commit":
            assert record.crashes == 0, "it was completed before its process died"
    own.close()
    assert await one.stop() == 0
    (counts,) = await engine.inspect.counts()
    assert (counts.running, counts.completed, counts.window.completed) == (0, len(ids), len(ids))
    await engine.close()
