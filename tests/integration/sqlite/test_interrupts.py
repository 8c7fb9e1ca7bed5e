"""A thread that is interrupted while it writes for itself and for others, as by Ctrl-C."""

import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.integration.sqlite.children import PATIENCE_S, ROOT
from tests.integration.sqlite.plain_file import file_url
from tests.interrupts import interrupted_at
from tidemill.engines.sqlite.db.calls import ThreadCall
from tidemill.engines.sqlite.db.shared import stores
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.url import parse_url
from tidemill.model.errors import EngineUnavailable, Refused


@pytest.mark.row("A3")
def test_an_interrupted_enqueue_is_stored_whole_or_not_at_all(path: Path) -> None:
    """In a process of its own: the timer of its interrupts is that of the test runner's time limit."""
    command = (sys.executable, "-m", "tests.integration.sqlite.interrupted_enqueues", f"sqlite:///{path}")
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr, "in the other thread"
    acknowledged, interrupts = map(int, run.stdout.split())

    with closing(sqlite3.connect(path)) as db:
        stored, positions = db.execute(
            "SELECT (SELECT count(*) FROM job), (SELECT sum(last - first + 1) FROM ready)"
        ).fetchone()
        (counted,) = db.execute("SELECT sum(count) FROM tally").fetchone()
    assert stored == positions == counted
    assert acknowledged <= stored <= acknowledged + interrupts


@pytest.mark.row("A3")
def test_a_call_in_the_middle_of_another_is_refused(path: Path) -> None:
    """As by the handler of a signal, which runs in the thread whose transaction is open."""
    store, _, let_go = stores.take(parse_url(file_url(path)), "tidemill", migrate=True)

    def nested(_: Step) -> None:
        store.writer.run_here(ThreadCall(lambda _: None, None))

    try:
        with pytest.raises(Refused, match="in the middle of another"):
            store.writer.run_here(ThreadCall(nested, None))
        assert store.writer.run_here(ThreadCall(lambda _: 7, None)) == 7
    finally:
        let_go()


@pytest.mark.row("A3")
def test_a_call_is_never_answered_by_another_threads_interrupt(path: Path) -> None:
    """At every moment at which Python calls handlers of signals, one after the other: where a function
    begins, and after each call into C. Another thread's call is in the same transaction each time."""
    store, _, let_go = stores.take(parse_url(file_url(path)), "tidemill", migrate=True)
    writer = store.writer
    acknowledged: list[int] = []

    def other(n: int) -> None:
        with suppress(EngineUnavailable):
            acknowledged.append(writer.run_here(ThreadCall(lambda step: _note(step, n), None)))

    try:
        writer.run_here(ThreadCall(lambda step: step.db.execute("CREATE TABLE noted (n)"), None))
        moment, interrupted = 0, True
        while interrupted:
            moment += 1
            thread = threading.Thread(target=other, args=(moment,))
            with writer._turn:
                thread.start()
                while not writer._waiting:
                    time.sleep(0)
                interrupted = interrupted_at(
                    moment, lambda: writer.run_here(ThreadCall(lambda step: _note(step, -1), None))
                )
            thread.join()
            assert writer.run_here(ThreadCall(lambda _: 7, None)) == 7, "nothing stays locked or open"
    finally:
        let_go()
    with closing(sqlite3.connect(path)) as db:
        stored = [n for (n,) in db.execute("SELECT n FROM noted WHERE n > 0 ORDER BY n")]
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored))
    assert moment in acknowledged
    assert len(acknowledged) < moment, "some transactions were interrupted"


def _note(step: Step, n: int) -> int:
    step.db.execute("INSERT INTO noted VALUES (?)", (n,))
    return n
