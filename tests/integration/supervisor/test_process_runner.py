"""Jobs in processes of their own."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import APP, TASKS, a_job, enqueue, finished, noted, noted_pids
from tests.integration.supervisor.processes import children_of, is_gone, until
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import MESSAGE_LIMIT, TRACEBACK_LIMIT, JobState
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.time import SECOND
from tidemill.task.current import Abort, ControlledJob
from tidemill.worker.runner import process as runner_module
from tidemill.worker.runner.pool import (
    AbortedRun,
    Killed,
    ProcessOutcome,
    Raised,
    Returned,
    RunnerCrashed,
    RunnerPool,
)


class Notebook:
    """What a run noted."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.lines: list[tuple[str, str]] = []

    def progress(self, value: bytes) -> None:
        self.values.append(json.loads(value))

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))


class Runs:
    """Runs jobs, without an engine."""

    def __init__(self, runner: RunnerPool) -> None:
        self.runner = runner
        self.notebook = Notebook()
        self._fence = 0

    def begin(self, task: str, *args: object, fresh: bool = False) -> "Begun":
        self._fence += 1
        job = a_claimed_job(task, *args, fence=self._fence)
        running = ControlledJob(job, self.notebook)
        return Begun(job, running, asyncio.ensure_future(self.runner.run(job, running, fresh=fresh)))

    async def run(self, task: str, *args: object, fresh: bool = False) -> ProcessOutcome:
        return await self.begin(task, *args, fresh=fresh).outcome


class Begun:
    def __init__(
        self, job: ClaimedJob, running: ControlledJob, outcome: "asyncio.Future[ProcessOutcome]"
    ) -> None:
        self.fence = job.fence
        self.running = running
        self.outcome = outcome


def a_claimed_job(task: str, *args: object, fence: int) -> ClaimedJob:
    return ClaimedJob(
        id=new_id(),
        fence=fence,
        seq=1,
        task=TASKS + task,
        queue="default",
        priority=5,
        attempt=1,
        max_attempts=5,
        codec=1,
        body=json.dumps([args, {}]).encode(),
        headers=None,
        key=None,
        timeout=None,
        retry=None,
        created_at=0,
        ready_at=0,
        crashes=0,
        suspect=False,
        limited=False,
        on_dead=None,
        schedule=None,
    )


@pytest.fixture
async def runs() -> AsyncIterator[Runs]:
    before = len(os.listdir("/proc/self/fd"))
    runner = RunnerPool(APP, most=2)
    yield Runs(runner)
    await runner.close()
    assert children_of(os.getpid()) == []
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_result_comes_back_as_it_is_stored(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUP", "here")
    (tmp_path / "go").touch()
    assert await runs.run("wait_in_process", str(tmp_path), "go") == Returned(b'"here"')


async def test_processes_are_kept_warm_and_run_one_job_at_a_time(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    for _ in range(3):
        await runs.run("wait_in_process", str(tmp_path), "go")
    assert len(set(noted_pids(tmp_path, "waiting"))) == 1
    together = [runs.begin("wait_in_process", str(tmp_path), "later") for _ in range(2)]
    await until(lambda: len(noted(tmp_path, "waiting")) == 5)
    assert len(set(noted_pids(tmp_path, "waiting"))) == 2
    (tmp_path / "later").touch()
    await asyncio.gather(*[begun.outcome for begun in together])
    await runs.run("wait_in_process", str(tmp_path), "go")
    assert len(set(noted_pids(tmp_path, "waiting"))) == 2


async def test_a_fresh_process_runs_nothing_before_and_nothing_after(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    for fresh in (False, True, True, False):
        await runs.run("wait_in_process", str(tmp_path), "go", fresh=fresh)
    plain, first, second, again = noted_pids(tmp_path, "waiting")
    assert plain == again
    assert len({plain, first, second}) == 3
    await until(lambda: is_gone(first) and is_gone(second))


async def test_any_kind_of_task_can_run_in_one(runs: Runs, tmp_path: Path) -> None:
    """Suspects do, whatever they are."""
    (tmp_path / "go").touch()
    for task in ("wait_for", "wait_in_thread"):
        assert await runs.run(task, str(tmp_path), "go", fresh=True) == Returned(b'""')


async def test_progress_and_lines_travel_and_the_abort_flag_too(runs: Runs, tmp_path: Path) -> None:
    begun = runs.begin("obedient_process", str(tmp_path))
    await until(lambda: runs.notebook.values and len(runs.notebook.lines) == 3)
    assert runs.notebook.lines == [("info", f"line {number}") for number in range(3)]
    assert runs.notebook.values == [{"done": 1, "total": 2, "message": "half"}]
    begun.running.abort(Abort.DRAIN)
    runs.runner.stop(begun.fence, Abort.DRAIN, kill=False)
    assert await begun.outcome == AbortedRun(Abort.DRAIN)
    assert noted(tmp_path, "aborted-drain")


async def test_what_does_not_obey_is_killed(runs: Runs, tmp_path: Path) -> None:
    begun = runs.begin("wait_in_process", str(tmp_path), "never")
    await until(lambda: noted(tmp_path, "waiting"))
    (pid,) = noted_pids(tmp_path, "waiting")
    runs.runner.stop(begun.fence, Abort.CANCEL, kill=False)
    runs.runner.stop(begun.fence, Abort.CANCEL, kill=True)
    assert await begun.outcome == Killed()
    assert is_gone(pid)
    (tmp_path / "go").touch()
    assert await runs.run("wait_in_process", str(tmp_path), "go") == Returned(b'""'), (
        "another takes its place"
    )


async def test_a_wait_that_is_cancelled_ends_the_process(runs: Runs, tmp_path: Path) -> None:
    begun = runs.begin("wait_in_process", str(tmp_path), "never")
    await until(lambda: noted(tmp_path, "waiting"))
    begun.outcome.cancel()
    await until(lambda: is_gone(noted_pids(tmp_path, "waiting")[0]))


async def test_a_run_that_was_stopped_before_it_had_a_process_never_starts(
    runs: Runs, tmp_path: Path
) -> None:
    begun = runs.begin("wait_in_process", str(tmp_path), "never")
    begun.running.abort(Abort.CANCEL)
    assert await begun.outcome == AbortedRun(Abort.CANCEL)
    assert noted(tmp_path, "waiting") == []


@pytest.mark.parametrize(("kind", "cause"), [("exit", "exit code 3"), ("segfault", "SIGSEGV")])
async def test_a_crash_names_its_cause(runs: Runs, tmp_path: Path, kind: str, cause: str) -> None:
    outcome = await runs.run("poison_in_process", str(tmp_path), kind)
    assert isinstance(outcome, RunnerCrashed)
    assert cause in outcome.message


async def test_an_idle_process_that_died_is_no_crash_of_the_next_job(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    await runs.run("wait_in_process", str(tmp_path), "go")
    (pid,) = noted_pids(tmp_path, "waiting")
    os.kill(pid, signal.SIGKILL)
    assert await runs.run("wait_in_process", str(tmp_path), "go") == Returned(b'""')


async def test_failures_are_records(runs: Runs, tmp_path: Path) -> None:
    unknown = await runs.run("no_such_task")
    assert isinstance(unknown, Raised)
    assert "no task" in unknown.failure.message
    wrong = await runs.run("wait_in_process", "only one argument")
    assert isinstance(wrong, Raised)
    assert wrong.failure.kind == "payload"
    eats = await runs.run("eats_memory", str(tmp_path))
    assert isinstance(eats, Raised)
    assert eats.lineage == ["MemoryError", "Exception", "BaseException"]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("exits", "SystemExit"),
        ("interrupts", "KeyboardInterrupt"),
        ("odd", "tests.integration.supervisor.app.Odd"),
        ("recurses", "RecursionError"),
    ],
)
async def test_whatever_is_raised_is_a_failure_of_the_job(runs: Runs, how: str, error: str) -> None:
    """And never ends the process."""
    outcome = await runs.run("misbehaves", how)
    assert isinstance(outcome, Raised)
    assert (outcome.failure.kind, outcome.failure.error) == ("error", error)
    assert outcome.lineage[0] == error
    (pid,) = children_of(os.getpid())
    assert await runs.run("misbehaves", "not at all") == Returned(None)
    assert children_of(os.getpid()) == [pid]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("unencodable", "tidemill.model.errors.UnencodableResult"),
        ("too large", "tidemill.model.errors.ResultTooLarge"),
    ],
)
async def test_a_result_that_cannot_be_stored_is_no_failed_attempt(runs: Runs, how: str, error: str) -> None:
    """The work was done: the kind of the failure says that it must not be done again."""
    outcome = await runs.run("misbehaves", how)
    assert isinstance(outcome, Raised)
    assert (outcome.failure.kind, outcome.failure.error) == ("payload", error)


async def test_an_app_that_cannot_be_loaded_is_a_failed_attempt() -> None:
    runner = RunnerPool("tests.integration.supervisor.app:nothing", most=1)
    outcome = await Runs(runner).run("quick", "x")
    assert isinstance(outcome, Raised)
    assert "has no 'nothing'" in outcome.failure.message
    await runner.close()


async def test_processes_that_cannot_be_started_are_a_failed_attempt(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "COMMAND", ("/no/such/program",))
    outcome = await runs.run("quick", str(tmp_path))
    assert isinstance(outcome, Raised)
    assert outcome.lineage[0] == "FileNotFoundError"


async def test_idle_processes_end(tmp_path: Path) -> None:
    runner = RunnerPool(APP, most=2, idle_s=0.05)
    (tmp_path / "go").touch()
    await Runs(runner).run("wait_in_process", str(tmp_path), "go")
    await until(lambda: is_gone(noted_pids(tmp_path, "waiting")[0]))
    await runner.close()


async def test_closing_kills_what_runs(tmp_path: Path) -> None:
    runner = RunnerPool(APP, most=2)
    begun = Runs(runner).begin("wait_in_process", str(tmp_path), "never")
    await until(lambda: noted(tmp_path, "waiting"))
    await runner.close()
    assert await begun.outcome == Killed()
    assert children_of(os.getpid()) == []


async def test_large_payloads_and_results_pass(runs: Runs) -> None:
    """As large as they may be, and with every kind of character."""
    text = 'quoted "\n\u2028\x00ü' + "x" * 1_000_000
    outcome = await runs.run("echo", text)
    assert isinstance(outcome, Returned)
    assert outcome.result is not None
    assert json.loads(outcome.result) == text


@pytest.mark.parametrize(
    "what", ["half a character", "long lines", "long lines of control characters", "long progress"]
)
async def test_notes_that_are_hard_to_send_arrive_within_their_bounds(runs: Runs, what: str) -> None:
    """And neither kill the process nor make it deaf: the next job runs in the same one."""
    outcome = await runs.run("says", what)
    assert outcome == await runs.run("says", "nothing more")
    _, *lines, _ = [text for _, text in runs.notebook.lines]
    assert all(len(text.encode()) <= MESSAGE_LIMIT for text in lines)
    match what:
        case "half a character":
            assert lines == ["file \\udcff"]
        case "long progress":
            assert len(runs.notebook.values[-1]["message"]) == MESSAGE_LIMIT
        case _:
            assert len(lines) == 900


@pytest.mark.parametrize("what", ["a long error", "an error with half a character"])
async def test_errors_that_are_hard_to_send_are_failures_like_others(runs: Runs, what: str) -> None:
    outcome = await runs.run("says", what)
    assert isinstance(outcome, Raised)
    assert outcome.failure.error == "ValueError"
    assert len(outcome.failure.message) <= MESSAGE_LIMIT
    assert len(outcome.failure.traceback) <= TRACEBACK_LIMIT


async def test_a_process_that_cannot_hear_us_ends(runs: Runs, tmp_path: Path) -> None:
    """It would be kept, and given a job that it never receives."""
    (tmp_path / "go").touch()
    await runs.run("wait_in_process", str(tmp_path), "go")
    (pid,) = noted_pids(tmp_path, "waiting")
    (idle,) = runs.runner._idle
    idle._program.send({"type": "not one of ours"})
    await until(lambda: is_gone(pid))
    assert await runs.run("wait_in_process", str(tmp_path), "go") == Returned(b'""')


async def test_a_process_that_our_signal_met_before_it_began_is_not_replaced(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interpreter that has only just started has no handler yet."""
    monkeypatch.setattr(runner_module, "COMMAND", ("sleep", "1000"))
    begun = runs.begin("quick", str(tmp_path))
    await until(lambda: runs.runner._busy)
    begun.running.abort(Abort.DRAIN)
    runs.runner.stop(begun.fence, Abort.DRAIN, kill=False)
    assert await begun.outcome == AbortedRun(Abort.DRAIN)
    assert children_of(os.getpid()) == []


@pytest.mark.row("B11", "D9")
async def test_a_cancelled_job_in_a_process_learns_of_it(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    await group(slots=2).ready()
    obedient, stubborn = await enqueue(
        engine,
        a_job("obedient_process", str(tmp_path)),
        a_job("wait_in_process", str(tmp_path), "never"),
    )
    await until(lambda: len(noted(tmp_path, "waiting")) == 2)
    await engine.jobs.cancel([obedient, stubborn])
    jobs = await finished(engine, [obedient, stubborn])
    assert [job.state for job in jobs] == [JobState.CANCELLED] * 2
    assert noted(tmp_path, "aborted-cancel")
    assert [line.message for line in await engine.inspect.log(obedient)] == ["line 0", "line 1", "line 2"]
    assert jobs[0].progress is not None
    assert msgspec.json.decode(jobs[0].progress)["message"] == "half"


@pytest.mark.row("E4")
async def test_a_job_in_a_process_is_killed_at_its_timeout(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=2).ready()
    job = a_job("wait_in_process", str(tmp_path), "never", timeout=SECOND, attempts=1)
    (ended,) = await finished(engine, await enqueue(engine, job))
    assert (ended.state, ended.attempts) == (JobState.DEAD, 1)
    assert ended.error is not None
    assert ended.error.kind == "timeout"
    await until(lambda: all(is_gone(pid) for pid in noted_pids(tmp_path, "waiting")))
    assert one.log.count("is ready") == 1
