"""A process that has said its last word ends, whatever still runs in it."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_config, a_job, enqueue, finished, noted, states
from tests.integration.supervisor.processes import is_gone, until
from tests.integration.supervisor.test_process_runner import Notebook, a_claimed_job
from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.time import SECOND
from tidemill.task.current import ControlledJob
from tidemill.worker.member import worker_process
from tidemill.worker.member.messages import CannotLoad, Drained, Leaving, encode_line
from tidemill.worker.member.spawn import DESCRIPTORS
from tidemill.worker.member.worker_process import WorkerProcess
from tidemill.worker.process.main import CANNOT_LOAD
from tidemill.worker.runner import process as runner_process
from tidemill.worker.runner.messages import Open, RunnerCannotLoad
from tidemill.worker.runner.process import NeverBegan, RunnerProcess

DEPLOYED = "tests.integration.supervisor.deployed:app"
PATIENCE_S = 30
LONG_S = 1_000.0
"""A deadline that does not help."""


@pytest.mark.row("A12")
@pytest.mark.parametrize("task", ["leaves_a_thread", "outlived_by_a_thread"])
async def test_a_thread_that_a_task_left_does_not_keep_a_drained_process(
    engine: Engine, group: StartGroup, tmp_path: Path, task: str
) -> None:
    one = await group(shutdown_timeout_s=LONG_S).ready()
    if task == "leaves_a_thread":
        job = a_job(task)
    else:
        job = a_job(task, str(tmp_path), timeout=SECOND // 5, attempts=1)
    await finished(engine, await enqueue(engine, job))
    assert await one.stop() == 0
    assert "does not end" not in one.log


@pytest.mark.row("A4")
async def test_one_that_leaves_by_its_own_decision_makes_room_for_another(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """Though a thread of it never ends."""
    leaves = tmp_path / "leaves"
    one = await group(app=DEPLOYED, environment={"LINGERS": "1", "LEAVES": str(leaves)}).ready()
    (worker,) = one.workers
    leaves.touch()
    await one.ready(2)
    assert is_gone(worker)
    assert f"worker process {worker} left: ZeroDivisionError" in one.log
    assert "does not end" not in one.log
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    assert states(await finished(engine, ids)) == {"completed": 1}


async def test_one_that_cannot_load_the_app_ends(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    """Though the half of the app that was imported has started a thread."""
    broken = tmp_path / "broken"
    broken.touch()
    one = group(app=DEPLOYED, environment={"LINGERS": "1", "BROKEN": str(broken)})
    assert await one.ended() == 1
    assert "half of it is there" in one.log.splitlines()[-1]
    assert "does not end" not in one.log


@pytest.mark.row("A4")
async def test_a_loop_that_was_broken_ends_its_process(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """It can say nothing any more. It was the task's doing, and counts as a crash; in a process of its own
    the same is a failed attempt."""
    await group(slots=2).ready()
    ids = await enqueue(engine, a_job("breaks_the_loop", str(tmp_path), attempts=1))
    (job,) = await finished(engine, ids)
    assert (job.state, job.crashes, job.attempts) == (JobState.DEAD, 1, 1)
    assert len(noted(tmp_path, "breaks")) == 2


STAYS = """
import time
from tidemill.worker.member.messages import CannotLoad, Drained, Hello, Leaving, encode_line, receive_first
from tidemill.worker.member.spawn import inherited
end, _ = inherited()
receive_first(end, Hello)
end.sendall(encode_line({word!r}))
time.sleep(1000)
"""


@pytest.mark.parametrize("word", [Drained(1, 2), Leaving("retired"), CannotLoad("no such app")])
async def test_one_that_does_not_end_after_its_last_message_is_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, word: object
) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, "-c", STAYS.format(word=word)))
    monkeypatch.setattr(worker_process, "END_S", 0.05)
    one = WorkerProcess(a_config("sqlite://"), member=bytes(16), takes_suspects=False)
    await one.start()
    assert await asyncio.wait_for(one.wait(), PATIENCE_S) == -9
    assert word in (one.drained, Leaving(one.leaving), CannotLoad(one.cannot_load))
    assert "has sent its last message and does not end" in caplog.text
    one.close()


ENDS = STAYS.replace("time.sleep(1000)", f"raise SystemExit({CANNOT_LOAD})")


async def test_one_that_ends_in_time_is_not_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, "-c", ENDS.format(word=CannotLoad("no"))))
    one = WorkerProcess(a_config("sqlite://"), member=bytes(16), takes_suspects=False)
    await one.start()
    assert await asyncio.wait_for(one.wait(), PATIENCE_S) == CANNOT_LOAD
    one.close()
    assert one._overdue is not None
    assert one._overdue.cancelled()
    await until(lambda: is_gone(one.pid))
    assert caplog.messages == []


ENDED = f"""
import os
open({{gate!r}}).close()
os.write(int(os.environ[{DESCRIPTORS!r}].split(",")[0]), {{line!r}})
"""
"""It ends once the gate is opened, without importing anything of ours."""


@pytest.fixture
def gate(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "gate")
    return str(tmp_path / "gate")


def says_and_ends(message: object, gate: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", ENDED.format(gate=gate, line=encode_line(message)))


def let_it_end(pid: int, gate: str) -> None:
    """Open the gate, and wait until the process has ended. The loop, which is blocked meanwhile, has read
    nothing of it."""
    with open(gate, "wb"):
        pass
    with suppress(ChildProcessError):  # a thread that watches it may be first to know
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.row("A12")
async def test_a_process_that_ended_before_we_sent_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    """Else jobs that it handed back are not counted, and jobs that ended well are blamed for a death."""
    monkeypatch.setattr(worker_process, "COMMAND", says_and_ends(Drained(1, 2), gate))
    one = WorkerProcess(a_config("sqlite://"), member=bytes(16), takes_suspects=False)
    await one.start()
    let_it_end(one.pid, gate)
    assert not one.heartbeat_answered(boot_ns())
    assert await asyncio.wait_for(one.wait(), PATIENCE_S) == 0
    assert one.drained == Drained(1, 2)
    one.close()


@pytest.mark.row("A4")
async def test_a_runner_that_ended_before_it_got_a_job_says_why(
    monkeypatch: pytest.MonkeyPatch, gate: str
) -> None:
    monkeypatch.setattr(runner_process, "COMMAND", says_and_ends(RunnerCannotLoad("no such app"), gate))
    one = await RunnerProcess.start(Open("no_such:app", "text"))
    let_it_end(one._program.pid, gate)
    job = a_claimed_job("f", fence=1)
    with pytest.raises(NeverBegan, match="no such app"):
        await asyncio.wait_for(one.perform(job, ControlledJob(job, Notebook()), lambda: None), PATIENCE_S)
    assert not one.alive
    await one.leave()
