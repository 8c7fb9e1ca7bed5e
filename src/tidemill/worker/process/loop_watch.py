"""Watches from a thread whether the worker's loop answers, and logs what blocks it.

A task that blocks the loop (a blocking call in an `async def`, a long computation) stops every other task on
it, and claims and outcomes with them. So a thread asks the loop every `ASK_S` to answer. The answer writes
the moment of the next question to the held table: the loop is silent from that moment on, not while no
question is due. The supervisor reads that, whatever this process does.

A loop that has not answered for `BLOCKED_AFTER_S` is logged with the job that blocks it and the line where
its code stands, and once more when it answers again. Code that holds the GIL stops this thread too. Then only
the second message comes, when that is over.

The two threads share queues that are written in C. An `Event` has a lock, which an interrupt of the loop's
thread could leave locked (`engine.locked` says why).

Times are of the monotonic clock, as the loop's own: a machine that was suspended did not block its loops.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType

from tidemill.model.jobs.job import Fence
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.report import Report
from tidemill.worker.running import on_loop as loop_runner
from tidemill.worker.running.run import Run

ASK_S = 0.5
BLOCKED_AFTER_S = 1.0

_CALLERS = (loop_runner.__file__, asyncio.events.__file__)
"""What calls a task's code, and any other code on a loop."""


class LoopWatch:
    """One thread that asks one loop. Made, started and stopped on that loop."""

    def __init__(
        self,
        held_table: HeldTable,
        active: Mapping[Fence, Run],
        report: Report,
        *,
        ask_s: float = ASK_S,
        blocked_after_s: float = BLOCKED_AFTER_S,
    ) -> None:
        self._held_table = held_table
        self._active = active
        self._report = report
        self._ask_s = ask_s
        self._blocked_after_s = blocked_after_s
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._answers: SimpleQueue[None] = SimpleQueue()
        """One for each question, and one that ends the last wait."""
        self._stops: SimpleQueue[None] = SimpleQueue()
        self._stopped = False

    def start(self) -> None:
        """Ask from now on."""
        self._promise()
        threading.Thread(target=self._watch, name="tidemill-loop-watch", daemon=True).start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped = True
        self._stops.put(None)
        self._answers.put(None)
        self._held_table.loop_answers_by(0)

    def _answer(self) -> None:
        """On the loop."""
        if not self._stopped:
            self._promise()
        self._answers.put(None)

    def _promise(self) -> None:
        self._held_table.loop_answers_by(time.monotonic_ns() + round(self._ask_s * 1e9))

    def _watch(self) -> None:
        while not _comes(self._stops, self._ask_s) and not self._stopped:
            asked_at = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # it was closed
                return
            in_time = _comes(self._answers, self._blocked_after_s)
            if not in_time and not self._stopped:
                self._report.loop_blocked(time.monotonic() - asked_at, self._busy_with(), self._stands_at())
                self._answers.get()
            silent_s = time.monotonic() - asked_at
            if silent_s >= self._blocked_after_s and not self._stopped:
                self._report.loop_answers(silent_s, warned=not in_time)

    def _busy_with(self) -> Run | None:
        """The run whose code the loop is in; None: something else."""
        task = asyncio.current_task(self._loop)
        if task is None:
            return None
        runs = list(self._active.values())
        for run in runs:
            if run.handle is task:
                return run
        # One that began at once (`eager_start`) has no handle before its first await.
        begun = [
            run for run in runs if run.handle is None and run.started_ns and run.job.task == task.get_name()
        ]
        return max(begun, key=lambda run: run.started_ns, default=None)

    def _stands_at(self) -> str:
        """The line of the task's own code, and the innermost one."""
        frame = sys._current_frames().get(self._loop_thread)
        inner = frame
        while frame is not None and (frame.f_back is None or frame.f_back.f_code.co_filename not in _CALLERS):
            frame = frame.f_back
        positions = [_position(one) for one in (frame, inner) if one is not None]
        return " -> ".join(dict.fromkeys(positions))


def _comes(queue: "SimpleQueue[None]", within_s: float) -> bool:
    try:
        queue.get(timeout=within_s)
    except Empty:
        return False
    return True


def _position(frame: FrameType) -> str:
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} in {code.co_name}"
