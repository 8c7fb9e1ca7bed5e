"""A thread that is interrupted while it writes for itself and for others, as by Ctrl-C."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.sqlite.children import PATIENCE_S, ROOT
from tests.integration.sqlite.plain_file import file_url
from tidemill.engines.sqlite.db.calls import ThreadCall
from tidemill.engines.sqlite.db.shared import stores
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.url import parse_url
from tidemill.model.errors import Refused


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
