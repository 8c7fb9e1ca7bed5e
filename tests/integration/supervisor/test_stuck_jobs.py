"""Code that does not let go: of the GIL, of the loop, of its slot."""

import os
import signal
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job, enqueue, finished, get, noted, states
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import SECOND

FOREVER = 60
"""2**60 steps."""
STUCK = {
    "holds the GIL": ("holds_the_gil", FOREVER),
    "blocks the loop": ("blocks_the_loop", 1_000.0),
    "ignores cancellation": ("ignores_cancellation",),
    "ignores the flag": ("ignores_the_flag",),
}
KINDS = [pytest.param("holds the GIL", marks=pytest.mark.every_engine), *list(STUCK)[1:]]
"""One of them is a proof on each engine in each run."""


@pytest.mark.row("E4")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_that_does_not_stop_is_stopped_with_its_process(
    engine: Engine, group: StartGroup, tmp_path: Path, kind: str
) -> None:
    """It has timed out; the others in its process are released, and nobody is a suspect."""
    one = await group(slots=4).ready()
    task, *args = STUCK[kind]
    others = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "go") for _ in range(2)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 2)
    (stuck,) = await enqueue(engine, a_job(str(task), str(tmp_path), *args, timeout=SECOND // 2, attempts=1))
    (job,) = await finished(engine, [stuck])
    assert (job.state, job.attempts, job.crashes, job.suspect) == (JobState.DEAD, 1, 0, False)
    assert job.error is not None
    assert job.error.kind == "timeout"
    (tmp_path / "go").touch()
    jobs = await finished(engine, others)
    assert states(jobs) == {"completed": 2}
    assert {(job.attempts, job.suspect, job.lost_runs) for job in jobs} == {(1, False, 0)}
    assert "that do not stop: killing it" in one.log


@pytest.mark.row("E4")
async def test_a_stuck_job_is_tried_again_by_its_own_policy(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    await group(slots=4).ready()
    retry = Retry(attempts=2, backoff="fixed", base=0.01, jitter="none")
    job = a_job("ignores_the_flag", str(tmp_path), timeout=SECOND // 5, retry=retry, attempts=2)
    (ended,) = await finished(engine, await enqueue(engine, job))
    assert (ended.state, ended.attempts) == (JobState.DEAD, 2)
    assert [failure.kind for failure in ended.failures] == ["timeout", "timeout"]
    assert ended.failures[0].retry_in == 10_000
    assert len(noted(tmp_path, "ignores")) == 2


@pytest.mark.row("D2", "E4")
@pytest.mark.parametrize("task", ["holds_the_gil", "blocks_the_loop"])
async def test_whoever_blocks_its_process_for_some_leases_keeps_its_lease(
    engine: Engine, group: StartGroup, tmp_path: Path, task: str
) -> None:
    """The supervisor heartbeats for it; another member sweeps all the time."""
    one = await group("one", slots=2).ready()
    argument: float = await _steps_for(3.0) if task == "holds_the_gil" else 3.0
    ids = await enqueue(engine, a_job(task, str(tmp_path), argument))
    await until(lambda: len(noted(tmp_path, "gil") + noted(tmp_path, "blocks")) == 1)
    await group("other", slots=2).ready()
    (job,) = await finished(engine, ids)
    assert (job.state, job.attempts, job.lost_runs, job.failure_count) == (JobState.COMPLETED, 1, 0, 0)
    assert len(noted(tmp_path, "gil") + noted(tmp_path, "blocks")) == 1
    assert await one.stop() == 0


async def _steps_for(seconds: float) -> int:
    """How long the text must be for the match to take at least this long here."""
    import re
    import time

    length, took = 16, 0.0
    while took < seconds / 4:
        length += 1
        began = time.perf_counter()
        re.match(r"(a+)+$", "a" * length + "b")
        took = time.perf_counter() - began
    return length + 2


@pytest.mark.row("E4")
async def test_a_worker_that_was_stopped_alone_keeps_its_jobs(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """SIGSTOP of the worker process past the lease: its supervisor heartbeats on."""
    one = await group("one", slots=2).ready()
    await group("other", slots=2).ready()
    ids = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "go") for _ in range(4)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 4)
    (worker,) = one.workers
    before = await engine.now()
    os.kill(worker, signal.SIGSTOP)
    while await engine.now() - before < 3 * SECOND:
        assert all(job.state is JobState.RUNNING for job in await get(engine, ids))
    os.kill(worker, signal.SIGCONT)
    (tmp_path / "go").touch()
    jobs = await finished(engine, ids)
    assert states(jobs) == {"completed": 4}
    assert {(job.lost_runs, job.failure_count) for job in jobs} == {(0, 0)}
    assert len(noted(tmp_path, "waiting")) == 4
