"""A blocked loop is seen from outside, and logged once with what blocks it."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from tests.unit.worker.builders import a_run
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.process.loop_watch import LoopWatch
from tidemill.worker.report import Report
from tidemill.worker.running.run import Run

PATIENCE_S = 30.0


@pytest.fixture
def held_table() -> Iterator[HeldTable]:
    held_table = HeldTable.create(4)
    yield held_table
    held_table.close()


class NotedReport(Report):
    """What is logged, and when: called in the watch's thread."""

    def __init__(self, held_table: HeldTable) -> None:
        super().__init__()
        self._held_table = held_table
        self._loop = asyncio.get_running_loop()
        self.blocked: list[tuple[Run | None, str]] = []
        self.silent_ns = 0
        self.said = threading.Event()
        self.answers: list[bool] = []
        self.over = asyncio.Event()

    def loop_blocked(self, for_s: float, run: Run | None, where: str) -> None:
        self.blocked.append((run, where))
        self.silent_ns = self._held_table.loop_silent_ns(time.monotonic_ns())
        self.said.set()

    def loop_answers(self, silent_s: float, *, warned: bool) -> None:
        self.answers.append(warned)
        self._loop.call_soon_threadsafe(self.over.set)


async def test_what_blocks_the_loop_is_named_once(held_table: HeldTable) -> None:
    report, run = NotedReport(held_table), a_run(1)
    watch = LoopWatch(held_table, {2: a_run(2), 1: run}, report, ask_s=0.01, blocked_after_s=0.05)

    async def blocks() -> None:
        assert report.said.wait(PATIENCE_S)

    watch.start()
    run.handle = asyncio.create_task(blocks())
    await asyncio.wait_for(report.over.wait(), PATIENCE_S)
    watch.stop()
    ((named, where),) = report.blocked
    assert named is run
    assert "in blocks" in where
    assert report.silent_ns > 0
    assert report.answers == [True]
    assert held_table.loop_silent_ns(time.monotonic_ns()) == 0


async def test_a_loop_that_answers_owes_nothing(held_table: HeldTable) -> None:
    watch = LoopWatch(held_table, {}, Report())
    before = time.monotonic_ns()
    watch.start()
    assert held_table.loop_silent_ns(before) == 0
    assert held_table.loop_silent_ns(before + 3_600 * 10**9) > 0, "the next answer is promised"
    watch.stop()
