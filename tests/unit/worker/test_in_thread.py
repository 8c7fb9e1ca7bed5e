"""The thread runner by itself: no job is left waiting, and no more threads than needed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.worker.builders import a_run
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry
from tidemill.worker.running.in_thread import ThreadRunner
from tidemill.worker.running.outcomes import Ending
from tidemill.worker.running.run import Run


class Steps:
    """Counts what ends."""

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.more = asyncio.Event()

    def start(self, run: Run) -> None:
        run.started_ns = 1

    def begin_clock(self, run: Run) -> None: ...

    def watch(self, run: Run) -> None: ...

    def end(self, run: Run, ending: Ending) -> None:
        self.ended.append(run.fence)
        self.more.set()

    async def reached(self, count: int) -> None:
        while len(self.ended) < count:
            self.more.clear()
            await self.more.wait()


@pytest.fixture
async def steps() -> Steps:
    return Steps()


@pytest.fixture
async def runner(steps: Steps) -> AsyncIterator[ThreadRunner]:
    runner = ThreadRunner(steps, 8)
    yield runner
    runner.close()


def runs_of(function: Callable[[], Any], count: int) -> list[Run]:
    registry = Registry()
    registry.add(Definition(function, name="task"))
    runs = [a_run(fence, registry=registry) for fence in range(1, count + 1)]
    for run in runs:
        run.args, run.kwargs = (), {}
    return runs


async def test_a_burst_of_short_jobs_is_done_in_order_by_few(steps: Steps, runner: ThreadRunner) -> None:
    for run in runs_of(lambda: None, 2_000):
        runner.begin(run)
    await steps.reached(2_000)
    assert sorted(steps.ended) == list(range(1, 2_001))
    assert runner.threads <= 8


async def test_jobs_that_block_get_a_thread_each(steps: Steps, runner: ThreadRunner) -> None:
    together = threading.Barrier(8)

    def meets() -> None:
        together.wait()

    for run in runs_of(meets, 8):
        runner.begin(run)
    await steps.reached(8)
    assert runner.threads == 8


async def test_more_than_the_limit_wait_for_a_thread(steps: Steps, runner: ThreadRunner) -> None:
    together = threading.Barrier(8)

    def meets() -> None:
        together.wait()

    for run in runs_of(meets, 32):
        runner.begin(run)
    await steps.reached(32)
    assert runner.threads == 8


async def test_one_at_a_time_never_sleeps_through_a_job(steps: Steps, runner: ThreadRunner) -> None:
    """The race between a thread that becomes idle and a job that is put at that moment."""
    for number, run in enumerate(runs_of(lambda: None, 3_000), start=1):
        runner.begin(run)
        if number % 3:
            await steps.reached(number)
    await steps.reached(3_000)


async def test_closing_lets_idle_threads_go(steps: Steps) -> None:
    runner = ThreadRunner(steps, 2)
    (run,) = runs_of(threading.current_thread, 1)
    before = set(threading.enumerate())
    runner.begin(run)
    await steps.reached(1)
    (thread,) = set(threading.enumerate()) - before
    runner.close()
    await asyncio.to_thread(thread.join)
    assert not thread.is_alive()
