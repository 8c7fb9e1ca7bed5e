"""Jobs in processes of their own: tasks with `runs_in="process"`, and suspects.

A process can be killed, whatever its code does. If it dies by itself, there is no doubt which job did it: it
had one job. Processes are started when they are needed, at most as many as slots. Each runs one job at a time
and is kept warm: starting one costs a few hundred milliseconds of imports. A process that had nothing to do
for `IDLE_S` ends, and so does one that is due to be recycled when its job has ended. A suspect gets a process
that ran nothing before and runs nothing after.

Nothing that comes back is decoded here: the result is the bytes that the engine stores, a failure is the
record that the engine keeps. Progress and log lines go to the run as if its code ran here.

**Authority.** A runner process belongs to this worker process: it has a channel to it, dies with it
(`parent_death`), and has a session of its own. It is told to stop by message, and by SIGTERM for code that
reacts to that. Nothing depends on its obedience.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.scaling.processes import NEVER_RECYCLED, RecycleBounds
from tidemill.task.current import Abort, ControlledJob
from tidemill.task.failures import failure_of, lineage
from tidemill.worker.member.info import memory_of
from tidemill.worker.runner.messages import (
    AbortedRun,
    CameLate,
    Killed,
    Open,
    ProcessOutcome,
    Raised,
    Returned,
    RunnerCrashed,
)
from tidemill.worker.runner.process import NeverBegan, RunnerProcess

__all__ = [
    "AbortedRun",
    "CameLate",
    "Killed",
    "ProcessOutcome",
    "Raised",
    "Returned",
    "RunnerCrashed",
    "RunnerPool",
]

IDLE_S = 60.0
"""How long a process is kept without work."""
STARTS = 3
"""How many processes may die before they begin, until that counts as a failed attempt."""

log = logging.getLogger("tidemill.worker")


class RunnerPool:
    """The processes of one worker. For use on its loop."""

    def __init__(
        self,
        app: str,
        *,
        most: int,
        log_format: str = "text",
        url: str = "",
        namespace: str = "",
        idle_s: float = IDLE_S,
        recycle: RecycleBounds = NEVER_RECYCLED,
    ) -> None:
        self._open = Open(app, log_format, url, namespace)
        self._most = most
        self._idle_s = idle_s
        self._recycle = recycle
        self._idle: list[RunnerProcess] = []
        self._busy: dict[Fence, RunnerProcess] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        *,
        fresh: bool,
        began: Callable[[], None] = lambda: None,
        between: tuple[int, int] = (0, 0),
    ) -> ProcessOutcome:
        """Run a job. `fresh`: in a process that nothing else ever runs in. `began` is called when its code
        is. `between`: from when to when it may start (see `Perform`)."""
        error: Exception
        for _ in range(STARTS):
            try:
                return await self._run_once(job, running, began, between, fresh=fresh)
            except NeverBegan as never_began:
                if running.aborted is not None:  # our own signal met it before it could listen to any
                    return AbortedRun(running.aborted)
                log.warning("a process for %s was not to be had: %s", job.task, never_began)
                error = never_began
            except OSError as refused:  # no memory, no process numbers, no descriptors
                return Raised(failure=failure_of(refused), lineage=lineage(refused))
        return Raised(failure=failure_of(error), lineage=lineage(error))

    async def _run_once(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        began: Callable[[], None],
        between: tuple[int, int],
        *,
        fresh: bool,
    ) -> ProcessOutcome:
        runner = await self._take(fresh=fresh)
        self._busy[job.fence] = runner
        try:
            if running.aborted is not None:  # while it was started
                return AbortedRun(running.aborted)
            return await runner.perform(job, running, began, between)
        finally:
            del self._busy[job.fence]
            self._put_back(runner, fresh=fresh)

    def stop(self, fence: Fence, reason: Abort, *, kill: bool) -> None:
        """Stop a run. One that is still being given a process sees the flag of its `ControlledJob`."""
        runner = self._busy.get(fence)
        if runner is not None:
            runner.stop(reason, kill=kill)

    async def close(self) -> None:
        """Kill what runs, end the others, wait for all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for runner in self._busy.values():
            runner.kill()
        for runner in (*self._idle, *self._busy.values()):
            self._dismiss(runner)
        self._idle.clear()
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _take(self, *, fresh: bool) -> RunnerProcess:
        while self._idle and not fresh:
            runner = self._idle.pop()  # the one used last is the warmest
            if runner.alive:
                return runner
            self._dismiss(runner)
        while self._idle and len(self._idle) + len(self._busy) >= self._most:
            self._dismiss(self._idle.pop(0))
        return await RunnerProcess.start(self._open)

    def _put_back(self, runner: RunnerProcess, *, fresh: bool) -> None:
        if fresh or not runner.alive or self._is_due(runner):
            self._dismiss(runner)
            return
        runner.idle_since = time.monotonic()
        self._idle.append(runner)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)

    def _is_due(self, runner: RunnerProcess) -> bool:
        """Whether it is to be replaced: it has nothing to do now, and the next job starts a new one."""
        recycle = self._recycle
        memory = None if recycle.mebibytes is None else memory_of(runner.pid)
        if reason := recycle.reason(finished=runner.jobs, memory=memory):
            log.info("runner process %d is replaced: %s", runner.pid, reason)
        return bool(reason)

    def _end_idle(self) -> None:
        """The oldest stand first."""
        self._timer = None
        now = time.monotonic()
        while self._idle and now - self._idle[0].idle_since >= self._idle_s:
            self._dismiss(self._idle.pop(0))
        if self._idle:
            due_s = self._idle[0].idle_since + self._idle_s - now
            self._timer = asyncio.get_running_loop().call_later(max(due_s, 0.01), self._end_idle)

    def _dismiss(self, runner: RunnerProcess) -> None:
        leaving = asyncio.create_task(runner.leave(), name="runner leaves")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
