"""`def` tasks: threads of our own, made on demand, and one hand-back for many results.

`run_in_executor` costs 28 to 130 microseconds a job: a future, a lock and a wake-up of the loop for each.
Here jobs wait in a deque, and results go into another one, which the loop empties when it is woken: once for
all results that have come in meanwhile.

Waking threads is the expensive part, so it is done in a chain. Putting a job wakes at most one idle thread. A
thread that takes a job while more are waiting wakes the next thread *before* it calls the function. If the
function blocks, the next thread goes on. If it is short, the first thread has taken all jobs before the
second one ever got the GIL. So a burst of 200 short jobs wakes two threads, and 200 sleeping jobs have 200.

Who may touch what: `_jobs` and `_results` are deques, whose append and popleft are atomic. `_waking` (a
thread was woken and has not come up yet) may be read by anyone; it is set under the lock, with the two
counts, and cleared by the thread that came up. A job is put *before* `_waking` is read, and a thread
checks for jobs again *after* it has entered itself as idle: so none is left waiting. The lock is taken by
`locked`: the loop may run in the main thread of a program, where Ctrl-C may come at any moment.

Threads are daemons: one that never returns must not keep a process from ending.
"""

import asyncio
import logging
import threading
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue

from tidemill.engine.locked import locked
from tidemill.task.current import CURRENT
from tidemill.worker.running.outcomes import Ending, Instead, aborted, raised, returned
from tidemill.worker.running.run import Run
from tidemill.worker.running.steps import Steps

TRY_AGAIN_S = 1.0
"""The pause before the next try when the system refuses a thread."""

log = logging.getLogger("tidemill.worker")


class ThreadRunner:
    """Runs plain functions, at most `limit` at once."""

    def __init__(self, steps: Steps, limit: int) -> None:
        self._steps = steps
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._jobs: deque[Run] = deque()
        self._results: deque[tuple[Run, Ending]] = deque()
        self._collecting = False
        self._lock = threading.RLock()
        self._wake_ups: SimpleQueue[bool] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._waking = False

    def begin(self, run: Run) -> None:
        """Run it as soon as a thread comes up."""
        self._jobs.append(run)
        if not self._waking:
            self._wake_one()

    def close(self) -> None:
        """Let the threads go that have nothing to do; the others end with their job."""
        locked(self._lock, self._let_idle_go)

    @property
    def threads(self) -> int:
        """How many there are."""
        return self._threads

    def _let_idle_go(self) -> None:
        self._limit = 0
        for _ in range(self._threads):
            self._wake_ups.put(False)

    def _wake_one(self) -> None:
        locked(self._lock, self._wake_or_start)

    def _wake_or_start(self) -> None:
        if self._waking:
            return
        if self._idle:
            self._idle -= 1
            self._waking = True
            self._wake_ups.put(True)
        elif self._threads < self._limit:
            self._threads += 1
            self._waking = True
            self._start_thread()

    def _start_thread(self) -> None:
        name = f"tidemill-job-{self._threads}"
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no memory, or no more threads for this user
            self._threads -= 1
            self._waking = False
            log.error("no thread could be started, %d are there: %s", self._threads, error)
            if not self._threads:  # no other thread would come by
                self._loop.call_soon_threadsafe(self._loop.call_later, TRY_AGAIN_S, self._wake_one)
        except BaseException:  # a handler of a signal raised
            if thread.ident is None:
                self._threads -= 1
                self._waking = False
            raise

    def _work(self) -> None:
        """The life of one thread."""
        while True:
            self._waking = False
            self._work_off()
            locked(self._lock, self._count_idle)
            if self._jobs and not self._waking:  # put after our last check, before we were idle
                self._wake_one()
            if not self._wake_ups.get():
                return

    def _count_idle(self) -> None:
        self._idle += 1

    def _work_off(self) -> None:
        jobs = self._jobs
        while True:
            try:
                run = jobs.popleft()
            except IndexError:
                return
            if jobs and not self._waking:
                self._wake_one()
            self._hand_back(run, self._context.copy().run(self._perform, run))

    def _perform(self, run: Run) -> Ending:
        running = run.running
        if running.aborted is not None:
            return aborted(run, running.aborted)
        CURRENT.set(running)
        if run.start_by_ns and run.late():
            return Instead.LATE
        self._steps.start(run)
        try:
            return returned(run, run.rules.function(*run.args, **run.kwargs))
        except BaseException as error:
            return raised(run, error)

    def _hand_back(self, run: Run, ending: Ending) -> None:
        self._results.append((run, ending))
        if not self._collecting:
            self._collecting = True
            with suppress(RuntimeError):  # the loop was closed: nothing waits any more
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._collecting = False  # first: a result that comes from now on calls again
        results, end = self._results, self._steps.end
        while results:
            end(*results.popleft())
