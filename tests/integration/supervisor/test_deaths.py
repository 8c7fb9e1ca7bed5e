"""Processes are killed; nothing is lost."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import (
    SUPERVISES,
    a_job,
    enqueue,
    finished,
    get,
    in_state,
    noted,
    noted_pids,
    states,
)
from tests.integration.supervisor.processes import (
    children_of,
    descriptors_of,
    is_gone,
    until,
)
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.member import Health

CEILING_S = 10.0
"""Generous: the bounds that are promised are measured elsewhere."""


@pytest.mark.every_engine
@pytest.mark.row("A4", "E4")
async def test_the_jobs_of_a_killed_worker_run_again_soon(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=5).ready()
    ids = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "go") for _ in range(3)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 3)
    (worker,) = one.workers
    began = time.monotonic()
    os.kill(worker, signal.SIGKILL)
    await in_state(engine, ids, JobState.READY)
    assert time.monotonic() - began < CEILING_S
    (tmp_path / "go").touch()
    jobs = await finished(engine, ids)
    assert states(jobs) == {"completed": 3}
    assert [job.attempts for job in jobs] == [1, 1, 1], "a crash is not a failed attempt"
    assert all(job.suspect for job in jobs), "any of the three may have done it"
    assert {job.error.kind for job in jobs if job.error} == {"lost"}
    assert all("SIGKILL" in job.error.message for job in jobs if job.error)
    assert await one.stop() == 0


@pytest.mark.row("A4")
async def test_no_zombies_and_no_open_descriptors_are_left(engine: Engine, group: StartGroup) -> None:
    one = await group(processes=2).ready(2)
    await until(lambda: len(one.workers) == 2)
    before = descriptors_of(one.pid)
    for death in range(1, 4):
        victim = one.workers[0]
        os.kill(victim, signal.SIGKILL)
        await one.ready(2 + death)
        assert victim not in children_of(one.pid)
    assert len(one.workers) == 2
    await until(lambda: descriptors_of(one.pid) <= before)
    assert await one.stop() == 0


@pytest.mark.every_engine
@pytest.mark.row("A4", "D3")
async def test_nothing_outlives_a_killed_supervisor_and_others_take_over(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group("one", slots=4, processes=2).ready(2)
    ids = await enqueue(
        engine,
        *[a_job("wait_for", str(tmp_path), "go") for _ in range(2)],
        *[a_job("wait_in_thread", str(tmp_path), "go") for _ in range(2)],
        *[a_job("wait_in_process", str(tmp_path), "go") for _ in range(2)],
    )
    await until(lambda: len(noted(tmp_path, "waiting")) == 6)
    family = {*one.workers, *noted_pids(tmp_path, "waiting")}
    assert len(family) >= 4
    one.kill()
    await until(lambda: all(is_gone(pid) for pid in family))
    await group("other", slots=10).ready()
    (tmp_path / "go").touch()
    jobs = await finished(engine, ids)
    assert states(jobs) == {"completed": 6}
    assert {job.lost_runs for job in jobs} == {1}
    assert {job.result for job in jobs} == {b'"other"'}
    (member,) = await engine.members.list()
    assert member.health is Health.HEALTHY


@pytest.mark.row("A4", "D3")
async def test_supervisor_and_worker_killed_together(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group("one", slots=4).ready()
    ids = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "go") for _ in range(4)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 4)
    one.close()
    await group("other", slots=4).ready()
    await until(lambda: len(noted(tmp_path, "waiting")) == 8)
    (tmp_path / "go").touch()
    assert states(await finished(engine, ids)) == {"completed": 4}


@pytest.mark.row("A4")
async def test_a_job_alone_that_is_killed_three_times_is_dead(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """Each time it was the only one that ran: that is proof."""
    await group(slots=5).ready()
    ids = await enqueue(engine, a_job("poison", str(tmp_path), "kill"))
    (job,) = await finished(engine, ids)
    assert (job.state, job.crashes, job.attempts) == (JobState.DEAD, 3, 0)
    assert len(noted(tmp_path, "poison")) == 3
    assert [failure.kind for failure in job.failures] == ["crash"] * 3


@pytest.mark.every_engine
@pytest.mark.row("B6", "D3")
async def test_a_member_that_was_stopped_past_its_lease_is_refused(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """SIGSTOP and back: the outcome that it then offers changes nothing, and it goes on working."""
    one = await group("one", slots=2).ready()
    ids = await enqueue(engine, a_job("wait_for", str(tmp_path), "go"))
    await until(lambda: len(noted(tmp_path, "waiting")) == 1)
    (running,) = await get(engine, ids)
    one.freeze()
    other = await group("other", slots=2).ready()
    await until(lambda: len(noted(tmp_path, "waiting")) == 2)
    (tmp_path / "go").touch()
    (job,) = await finished(engine, ids)
    assert (job.state, job.result, job.lost_runs) == (JobState.COMPLETED, b'"other"', 1)
    assert running.fence is not None
    assert job.settled_fence is not None
    assert job.settled_fence > running.fence
    one.thaw()
    await until(lambda: "came too late and was refused" in one.log)
    assert await other.stop() == 0
    later = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(3)])
    assert {job.result for job in await finished(engine, later)} == {b'"one"'}
    (same,) = await get(engine, ids)
    assert same == job
    assert await one.stop() == 0


@pytest.mark.row("D2", "D3")
async def test_a_stopped_supervisor_starts_nothing_on_an_old_heartbeat(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """Its worker lives and its lease is over: it takes nothing until the supervisor heartbeats again."""
    one = await group(slots=2, poll_s=0.1).ready()
    first = await enqueue(engine, a_job("quick", str(tmp_path)))
    await finished(engine, first)
    one.freeze(one.pid)
    (member,) = await engine.members.list()
    while member.health is not Health.GONE:
        await asyncio.sleep(0.05)
        (member,) = await engine.members.list()
    ids = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(5)])
    await asyncio.sleep(0.3)  # three polls: nothing is to happen, there is no fact to wait for
    assert states(await get(engine, ids)) == {"ready": 5}
    one.send_signal(signal.SIGCONT)
    assert states(await finished(engine, ids)) == {"completed": 5}


HAS_A_FAULT = """
import os
from pathlib import Path
from tidemill.worker.member.member import LocalMember
check_stuck = LocalMember._check_stuck
async def faulty(self):
    if Path(os.environ["FAULT"]).exists():
        raise ZeroDivisionError("a fault of our own")
    return await check_stuck(self)
LocalMember._check_stuck = faulty
"""


@pytest.mark.row("A4")
async def test_a_fault_of_the_supervisor_ends_everything_and_releases(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    environment = {"FAULT": str(tmp_path / "fault")}
    one = await group(slots=2, program=HAS_A_FAULT + SUPERVISES, environment=environment).ready()
    ids = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "never") for _ in range(2)])
    await until(lambda: len(noted(tmp_path, "waiting")) == 2)
    (worker,) = one.workers
    (tmp_path / "fault").touch()
    assert await one.ended() == 1
    assert one.log.rstrip().endswith("ZeroDivisionError: a fault of our own"), "not a group of errors"
    assert is_gone(worker)
    jobs = await get(engine, ids)
    assert states(jobs) == {"ready": 2}
    assert {(job.lost_runs, job.failure_count) for job in jobs} == {(0, 0)}
    assert await engine.members.list() == []


@pytest.mark.row("A4")
async def test_what_a_task_has_started_ends_with_its_process(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=2).ready()
    await enqueue(engine, a_job("starts_a_program", str(tmp_path)))
    await until(lambda: (tmp_path / "program").exists() and (tmp_path / "program").read_text())
    program = int((tmp_path / "program").read_text())
    assert not is_gone(program)
    os.kill(one.workers[0], signal.SIGKILL)
    await until(lambda: is_gone(program))
