"""A worker process is killed at each named moment of a run: nothing is lost, nothing is stranded."""

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.dying import POINTS
from tests.integration.supervisor.groups import a_job, enqueue, finished, noted, states
from tidemill.engine.protocol import Engine

JOBS = 30
CASES = [
    *[("quick", point) for point in POINTS],
    *[("wait_in_thread", point) for point in ("before start", "after start", "before settle")],
    *[("wait_in_process", point) for point in ("after claim", "before settle", "after settle")],
]
NOT_STARTED = ("before claim", "after claim", "after answer")
"""Moments of a first claim at which no job of it can have started."""


@pytest.mark.every_engine(3)
@pytest.mark.row("A4", "B6")
@pytest.mark.parametrize(("task", "point"), CASES)
async def test_killed_at(engine: Engine, group: StartGroup, tmp_path: Path, task: str, point: str) -> None:
    (tmp_path / "go").touch()
    args = (str(tmp_path),) if task == "quick" else (str(tmp_path), "go")
    ids = await enqueue(engine, *[a_job(task, *args) for _ in range(JOBS)])
    environment = {"DIE_AT": point, "DIE_ONCE": str(tmp_path / "died")}
    one = await group(slots=5, app="tests.integration.supervisor.dying:app", environment=environment).ready()
    jobs = await finished(engine, ids)
    assert (tmp_path / "died").exists()
    assert states(jobs) == {"completed": JOBS}
    assert {job.attempts for job in jobs} == {1}
    assert sum(job.crashes for job in jobs) <= 1
    ran = Counter(noted(tmp_path, "quick") + noted(tmp_path, "waiting"))
    assert len(ran) == JOBS, "at least once"
    assert max(ran.values()) <= 2
    if point in NOT_STARTED and task == "wait_in_process":
        assert not any(job.suspect for job in jobs)
    assert one.log.count("is gone") == 1
    assert await one.stop() == 0
    assert await engine.members.list() == []
