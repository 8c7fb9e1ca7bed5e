"""A thread that is interrupted while it writes for itself and for others, as by Ctrl-C."""

import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidemill import Tidemill
from tidemill.model.errors import EngineUnavailable

INTERRUPTS = 150
AGAIN_S = 2.0
"""One may be lost: what is raised in a callback of the garbage collector is forgotten. Then another comes."""


class Interrupt(BaseException):
    """As KeyboardInterrupt, but no test runner takes it for its own."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.row("A3")
@pytest.mark.usefixtures("alarm")
def test_an_interrupted_enqueue_is_stored_whole_or_not_at_all(path: Path) -> None:
    app = Tidemill(f"sqlite:///{path}")

    @app.task
    def work(n: int) -> None: ...

    others: list[str] = []
    over = threading.Event()

    def produce() -> None:
        while not over.is_set():
            others.append(work.enqueue(-1).id)  # would raise if another's interrupt reached it

    work.enqueue(0)
    thread = threading.Thread(target=produce)
    thread.start()
    acknowledged, interrupts = 1, 0
    try:
        while interrupts < INTERRUPTS:
            try:
                # A different moment each time, somewhere within a call.
                signal.setitimer(signal.ITIMER_REAL, 0.00001 + interrupts % 50 * 0.00004, AGAIN_S)
                while True:
                    work.enqueue(1)
                    acknowledged += 1
            except Interrupt:
                interrupts += 1
            except EngineUnavailable:
                pytest.fail("an interrupt left the engine unusable")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        over.set()
        thread.join()
    acknowledged += len(others)
    app.close()

    with closing(sqlite3.connect(path)) as db:
        stored, positions = db.execute(
            "SELECT (SELECT count(*) FROM job), (SELECT sum(last - first + 1) FROM ready)"
        ).fetchone()
        (counted,) = db.execute("SELECT sum(count) FROM tally").fetchone()
    assert stored == positions == counted
    assert acknowledged <= stored <= acknowledged + interrupts
