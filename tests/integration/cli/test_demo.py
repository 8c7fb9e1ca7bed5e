"""`tidemill demo`, as a newcomer runs it."""

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from tempfile import mkdtemp
from typing import Any

import asyncpg
import pytest
from rich.console import Console

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tests.programs import running
from tidemill.cli.demo import WorkType, slots_for
from tidemill.cli.demo.ending import show_the_end
from tidemill.cli.demo.happenings import happenings
from tidemill.cli.demo.screen import table
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id, show_id
from tidemill.model.jobs.job import Failure, JobRecord, JobState
from tidemill.model.time import SECOND

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"


@pytest.fixture
def named(engine_mode: str, url: str) -> Iterator[dict[str, str]]:
    """The environment of somebody who has said where, or nothing at all; nothing is to stay there."""
    if engine_mode != "postgres-server":
        yield dict(os.environ)
        return
    yield {**os.environ, "TIDEMILL_URL": url}
    assert asyncio.run(namespaces(url)) == []


async def namespaces(url: str) -> list[str]:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'tidemill_demo_%'")
    await connection.close()
    return [row[0] for row in rows]


@pytest.mark.row("A10")
def test_the_story(engine_mode: str, named: dict[str, str]) -> None:
    command = (sys.executable, "-m", "tidemill", "demo")
    folder = mkdtemp(prefix="c")  # short, as the paths of sockets have to be
    environment = {**named, "TMPDIR": folder}
    run = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    os.rmdir(folder)  # nothing was left behind
    assert "\x1b" not in run.stdout
    lines = run.stdout.splitlines()

    def told(task: str, what: str) -> bool:
        return any(re.search(rf" s  {UUID}  {task} +\d/\d  {what}", line) for line in lines)

    assert any("in the namespace tidemill_demo_" in line for line in lines) is engine_mode.startswith(
        "postgres"
    )
    assert told("welcome", "completed")
    assert told("remind", "waits 5 s")
    assert told("newsletter", r"failed: MailboxFull: .*; again in [\d.]+ s")
    assert told("newsletter", "completed")
    assert told("refund", "failed: NoSuchOrder: .*; that was the last attempt")
    assert told("export", "ran past its timeout; that was the last attempt")
    assert told("render", "its worker process died; it comes back")
    assert told("render", "completed")
    assert any(re.search(rf"kill -9 \d+: the worker process that runs {UUID}", line) for line in lines)
    assert lines[-1] == "0 jobs lost"
    assert lines[-2] == "13 jobs in the engine: 10 completed, 3 dead"
    ending = run.stdout[run.stdout.index("3 dead letters:") :]
    for name in ("id", "task", "attempts", "failed at", "error", "payload"):
        assert len(re.findall(rf"^  {name:<10} \S", ending, re.MULTILINE)) == 3
    assert '[[4711],{"cents":1250}]' in ending


@pytest.mark.row("A10")
def test_a_steady_stream_until_it_is_stopped(named: dict[str, str]) -> None:
    options = ("--load", "--rate", "50", "--fail", "50%", "--work", "1..5ms")
    command = (sys.executable, "-m", "tidemill", "demo", *options)
    with running(command, stdout=subprocess.PIPE, text=True, env=named) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"(\d+) completed, (\d+) failed attempts?", line)
            if found and int(found[1]) and int(found[2]):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(30) == 0
    assert "jobs enqueued" in rest


def test_an_interrupted_story_leaves_nothing_behind(named: dict[str, str]) -> None:
    command = (sys.executable, "-m", "tidemill", "demo")
    with running(command, stdout=subprocess.PIPE, text=True, env=named) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " runs on " in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(30) == 1
    assert "had not ended when the demo did" in rest
    assert rest.endswith("0 jobs lost\n")


def test_a_server_that_is_not_there_is_an_error_before_anything_starts(
    execute: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_URL", "postgresql://u:hush@127.0.0.1:1/shop")
    ran = execute("demo")
    assert (ran.code, ran.out) == (69, "")
    assert ran.err == "tidemill: postgresql://u@127.0.0.1:1/shop cannot be reached: connection refused\n"


def test_a_demo_that_is_killed_takes_its_workers_along() -> None:
    command = (sys.executable, "-m", "tidemill", "demo")
    with running(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = next(
            int(found[1]) for line in process.stdout if (found := re.search(r"process id (\d+)", line))
        )
        for line in process.stdout:
            if " runs on " in line:
                break
        ended = os.pidfd_open(worker)  # readable when it has
        process.kill()
        process.wait(30)
    assert select.select([ended], [], [], 30)[0]
    os.close(ended)


def test_a_lost_job_would_be_shown(store: Store) -> None:
    kept, lost = store.completed(1)[0], new_id()
    output = StringIO()

    async def end(engine: Engine) -> int:
        return await show_the_end(engine, [kept, lost], Console(file=output), complete=True)

    assert store.do(end) == 1
    assert output.getvalue().endswith("\n1 job lost\n")


def test_a_job_that_has_not_ended_is_shown(store: Store) -> None:
    ids = store.put(2)
    output = StringIO()

    async def end(engine: Engine) -> int:
        return await show_the_end(engine, ids, Console(file=output), complete=False)

    assert store.do(end) == 1
    assert "2 jobs had not ended when the demo did\n0 jobs lost\n" in output.getvalue()


def test_no_failure_is_missed_between_two_reads() -> None:
    def failure(number: int, retry_in: int | None) -> Failure:
        return Failure(error="x.Oh", message="no", number=number, attempt=number, retry_in=retry_in)

    before = JobRecord(id=new_id(), task="t", queue="q", priority=5, state=JobState.READY)
    failures = (failure(1, 3 * SECOND), failure(2, None))
    now = JobRecord(
        id=before.id,
        task="t",
        queue="q",
        priority=5,
        state=JobState.DEAD,
        attempts=2,
        max_attempts=2,
        failures=failures,
        failure_count=2,
    )
    assert list(happenings(before, now)) == [
        ("1/2", "failed: Oh: no; again in 3 s"),
        ("2/2", "failed: Oh: no; that was the last attempt"),
        ("2/2", "dead"),
    ]
    assert list(happenings(now, now)) == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    failure = Failure(error="x.Oh", message="no " * 50, retry_in=1_234_567)
    job = JobRecord(
        id=new_id(), task="newsletter", queue="q", priority=5, state=JobState.SCHEDULED, error=failure
    )
    output = StringIO()
    Console(file=output, width=width).print(table([job], 3.0, width))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for part in (show_id(job.id)[-8:], "newsletter", "0/5", "scheduled", "1.23 s", "Oh: no"):
        assert part in lines[3]


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("1..4s", (1, 4)),
        ("2s", (2, 2)),
        ("100ms..2s", (0.1, 2)),
        ("1s..1m", (1, 60)),
        ("5..50ms", (0.005, 0.05)),
    ],
)
def test_lengths_of_work(text: str, work: tuple[float, float]) -> None:
    assert WorkType().convert(text, None, None) == pytest.approx(work)


@pytest.mark.parametrize(
    "options",
    [
        ("--load", "--work", "4..1s"),
        ("--load", "--work", "x"),
        ("--load", "--fail", "110%"),
        ("--load", "--fail", "some"),
        ("--load", "--rate", "0"),
        ("--rate", "3"),
    ],
)
def test_bad_options_start_nothing(run: Run, options: tuple[str, ...]) -> None:
    ran = run("demo", *options)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_slots_keep_up_with_the_stream() -> None:
    for rate, work in ((1.0, (1.0, 4.0)), (100.0, (0.01, 0.05)), (200.0, (1.0, 4.0))):
        assert 2 * slots_for(rate, work) >= rate * sum(work) / 2
