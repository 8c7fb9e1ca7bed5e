"""Signals, deadlines, exit codes."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import (
    a_job,
    enqueue,
    finished,
    get,
    noted,
    noted_pids,
    states,
)
from tests.integration.supervisor.processes import is_gone, until
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState

on_every_engine = partial(pytest.param, marks=pytest.mark.every_engine)
"""One parameter that each run takes on each engine: a proof, which a sample is not."""
WAITING = ("wait_for", "wait_in_thread", "wait_in_process")


@pytest.mark.row("A12")
@pytest.mark.parametrize("number", [on_every_engine(signal.SIGTERM), signal.SIGINT])
async def test_a_signal_lets_what_runs_finish_and_takes_no_more(
    engine: Engine, group: StartGroup, tmp_path: Path, number: signal.Signals
) -> None:
    one = await group(slots=3).ready()
    running = await enqueue(engine, *[a_job(task, str(tmp_path), "go") for task in WAITING])
    await until(lambda: len(noted(tmp_path, "waiting")) == 3)
    one.send_signal(number)
    await until(lambda: "draining: 3 running" in one.log)
    late = await enqueue(engine, *[a_job("quick", str(tmp_path)) for _ in range(3)])
    (tmp_path / "go").touch()
    assert await one.ended() == 0
    assert states(await get(engine, running)) == {"completed": 3}
    assert states(await get(engine, late)) == {"ready": 3}
    assert "stopped: 3 finished since the start, 0 handed back" in one.log
    assert await engine.members.list() == []


@pytest.mark.row("B7")
@pytest.mark.parametrize("task", [on_every_engine(WAITING[0]), *WAITING[1:], "ignores_cancellation"])
async def test_at_the_deadline_what_still_runs_is_handed_back(
    engine: Engine, group: StartGroup, tmp_path: Path, task: str
) -> None:
    """Claimable at once, no attempt used, nobody blamed; exit 1 and a count."""
    one = await group(slots=3, shutdown_timeout_s=0.3).ready()
    args = (str(tmp_path),) if task == "ignores_cancellation" else (str(tmp_path), "never")
    ids = await enqueue(engine, *[a_job(task, *args) for _ in range(2)])
    await until(lambda: len(noted(tmp_path, "waiting") + noted(tmp_path, "ignores")) == 2)
    pids = {*one.workers, *noted_pids(tmp_path, "waiting")}
    assert await one.stop() == 1
    assert all(is_gone(pid) for pid in pids)
    jobs = await get(engine, ids)
    assert states(jobs) == {"ready": 2}
    assert {(job.attempts, job.suspect, job.lost_runs, job.failure_count) for job in jobs} == {
        (0, False, 0, 0)
    }
    assert "stopped: 0 finished since the start, 2 handed back" in one.log


@pytest.mark.row("B7")
@pytest.mark.parametrize("how", ["dies", "exits", "raises", "is gone"])
async def test_code_that_obeys_our_sigterm_in_its_own_way_is_not_blamed(
    engine: Engine, group: StartGroup, tmp_path: Path, how: str
) -> None:
    one = await group(slots=2, shutdown_timeout_s=0.1).ready()
    ids = await enqueue(engine, a_job("obeys_sigterm", str(tmp_path), how, attempts=1))
    await until(lambda: noted(tmp_path, "waiting"))
    assert await one.stop() == 1
    (job,) = await get(engine, ids)
    assert (job.state, job.attempts, job.crashes, job.failure_count) == (JobState.READY, 0, 0, 0)


@pytest.mark.row("B11")
@pytest.mark.parametrize("how", ["dies", "exits", "is gone"])
async def test_the_same_at_a_cancel_is_a_cancelled_job(
    engine: Engine, group: StartGroup, tmp_path: Path, how: str
) -> None:
    await group(slots=2, cancel_grace_s=None).ready()
    ids = await enqueue(engine, a_job("obeys_sigterm", str(tmp_path), how, attempts=1))
    await until(lambda: noted(tmp_path, "waiting"))
    await engine.jobs.cancel(ids)
    (job,) = await finished(engine, ids)
    assert (job.state, job.crashes, job.failure_count) == (JobState.CANCELLED, 0, 0)


@pytest.mark.row("B7")
async def test_a_second_signal_hurries(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    one = await group(slots=3, shutdown_timeout_s=1_000).ready()
    ids = await enqueue(engine, a_job("wait_for", str(tmp_path), "never"))
    await until(lambda: noted(tmp_path, "waiting"))
    one.send_signal(signal.SIGTERM)
    await until(lambda: "draining: 1 running" in one.log)
    one.send_signal(signal.SIGTERM)
    assert await one.ended() == 1
    assert states(await get(engine, ids)) == {"ready": 1}


@pytest.mark.row("B7")
async def test_a_third_signal_kills(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    """The loop is blocked: it receives nothing."""
    one = await group(slots=3, shutdown_timeout_s=1_000).ready()
    ids = await enqueue(engine, a_job("blocks_the_loop", str(tmp_path), 1_000.0))
    await until(lambda: noted(tmp_path, "blocks"))
    (worker,) = one.workers
    for word in ("draining for at most", "again: handing back", "once more: killing"):
        one.send_signal(signal.SIGTERM)
        await until(lambda word=word: word in one.log)  # type: ignore[misc]
    assert await one.ended() == 1
    assert is_gone(worker)
    (job,) = await get(engine, ids)
    assert (job.state, job.attempts, job.suspect) == (JobState.READY, 0, False)


@pytest.mark.row("B7")
async def test_a_worker_that_does_not_hear_the_drain_is_killed_after_its_deadline(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=3, shutdown_timeout_s=0.2).ready()
    ids = await enqueue(engine, a_job("blocks_the_loop", str(tmp_path), 1_000.0))
    await until(lambda: noted(tmp_path, "blocks"))
    assert await one.stop() == 1
    (job,) = await get(engine, ids)
    assert (job.state, job.attempts, job.suspect, job.crashes) == (JobState.READY, 0, False, 0)


@pytest.mark.row("A12", "B7")
@pytest.mark.parametrize("task", ["quick", on_every_engine("nap")])
async def test_a_signal_during_a_burst_loses_nothing(
    engine: Engine, group: StartGroup, tmp_path: Path, task: str
) -> None:
    """Everything is completed or ready; what completed ran once; the next worker does the rest."""
    args = (str(tmp_path),) if task == "quick" else (str(tmp_path), 0.005)
    ids: list[JobId] = []
    after = states([])
    for number in (2_000, 6_000, 18_000):  # a fast machine may be done before the signal: then a longer burst
        one = await group(f"one of {number}", slots=20, processes=2).ready(2)
        begun = len(noted(tmp_path, task)) + 100
        ids += await enqueue(engine, *[a_job(task, *args) for _ in range(number)])
        await until(lambda begun=begun: len(noted(tmp_path, task)) > begun)  # type: ignore[misc]
        assert await one.stop() == 0
        after = states(await get(engine, ids))
        assert set(after) <= {"completed", "ready"}
        if after["ready"]:
            break
    assert after["ready"] > 0, "the signal came too late to say anything"
    ran = noted(tmp_path, task)
    assert len(ran) == len(set(ran)) == after["completed"]
    await group("other", slots=20).ready()
    assert states(await finished(engine, ids)) == {"completed": len(ids)}
    ran = noted(tmp_path, task)
    assert len(ran) == len(set(ran)) == len(ids)


@pytest.mark.row("A12")
async def test_a_signal_before_the_app_is_loaded_ends_at_once(engine: Engine, group: StartGroup) -> None:
    one = group()
    await until(lambda: "working on" in one.log)
    assert await one.stop() == 0


@pytest.mark.row("A12")
async def test_signals_to_the_worker_process_are_left_to_its_supervisor(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """A service manager signals the whole group."""
    one = await group(slots=3).ready()
    running = await enqueue(engine, *[a_job(task, str(tmp_path), "go") for task in WAITING])
    await until(lambda: len(noted(tmp_path, "waiting")) == 3)
    for pid in {*one.workers, *noted_pids(tmp_path, "waiting"), one.pid}:
        os.kill(pid, signal.SIGTERM)
    await until(lambda: "draining: 3 running" in one.log)
    (tmp_path / "go").touch()
    assert await one.ended() == 0
    assert states(await get(engine, running)) == {"completed": 3}


async def test_an_app_that_cannot_be_loaded_is_said_once(engine: Engine, group: StartGroup) -> None:
    one = group(app="tests.integration.supervisor.app:nothing")
    assert await one.ended() == 1
    assert "'tests.integration.supervisor.app' has no 'nothing'" in one.log
    assert "BadInput" in one.log.splitlines()[-1]
    assert await engine.members.list() == []
