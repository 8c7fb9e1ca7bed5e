"""Jobs in processes of their own: those that ask for it (`runs_in="process"`), and suspects.

A process can be killed, whatever its code does; and if it dies by itself, there is no doubt who did it: it
had one job. Processes are started when they are needed, at most as many as slots, run one job at a time, and
are kept warm: starting one costs a few hundred milliseconds of imports. One that had nothing to do for
`IDLE_S` ends. A suspect gets a process that ran nothing before and runs nothing after.

What comes back is decoded by nobody here: the result is the bytes that the engine stores, a failure is the
record that the engine keeps. Progress and log lines go to the run as if its code ran here.

**Authority.** A runner process belongs to this worker process: a channel, a lifeline, a session of its own.
It is told to stop by message, and by SIGTERM for code that listens to that; nothing depends on its obedience.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable

import msgspec

from penstock.model.job import Fence
from penstock.model.run import ClaimedJob
from penstock.task.current import Abort, RunningJob
from penstock.task.failures import failure_of, lineage
from penstock.worker.runners.process_messages import (
    AbortedRun,
    Began,
    Crashed,
    FromRunner,
    Killed,
    Noted,
    Open,
    Perform,
    ProcessOutcome,
    Raised,
    Returned,
    Stop,
    Unfit,
)
from penstock.worker.spawn import Program, describe_exit, penstock

__all__ = ["AbortedRun", "Crashed", "Killed", "ProcessOutcome", "ProcessRunner", "Raised", "Returned"]

COMMAND = penstock("_runner")
IDLE_S = 60.0
"""How long a process is kept without work."""
STARTS = 3
"""How many processes may die before they begin, until that counts as a failed attempt."""
LEAVE_S = 5.0
"""How long one may take to end once it has been told to, before it is killed."""

log = logging.getLogger("penstock.worker")


class NeverBegan(Exception):
    """The process died before it called the job's code: not the job's doing."""


class Runner:
    """One process that runs jobs, one at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.killed = False
        self._program: Program
        self._ending: asyncio.Task[None]
        self._code: int | None = None
        self._unfit = ""
        self._began = False
        self._running: RunningJob | None = None
        self._outcome: asyncio.Future[ProcessOutcome] | None = None

    @classmethod
    async def start(cls, opening: Open) -> "Runner":
        """Execute it. `OSError` where that is not possible now."""
        runner = cls()
        runner._program = await Program.start(COMMAND, FromRunner, runner._hear)
        runner._program.send(opening)
        runner._ending = asyncio.create_task(runner._wait(), name="runner's end")
        return runner

    @property
    def alive(self) -> bool:
        return not (self.killed or self._unfit or self._program.ended)

    async def perform(self, job: ClaimedJob, running: RunningJob) -> ProcessOutcome:
        """Run one job, or `NeverBegan`. If whoever waits for it is cancelled, the process is killed."""
        self._began, self._running = False, running
        self._outcome = asyncio.get_running_loop().create_future()
        if self._code is not None or not self._program.send(Perform(job)):
            raise NeverBegan(self._unfit or "it had ended")
        try:
            return await self._outcome
        except asyncio.CancelledError:
            self.kill()
            raise
        finally:
            self._running = self._outcome = None

    def stop(self, reason: Abort, *, kill: bool) -> None:
        """Ask the code to stop, or end it."""
        if kill:
            self.kill()
        else:
            self._program.send(Stop(reason))
            self._program.deliver(signal.SIGTERM)

    def kill(self) -> None:
        """At once, with everything that its code has started."""
        self.killed = True
        self._program.kill()

    async def leave(self) -> None:
        """End it, and wait for that."""
        self._program.hang_up()
        try:
            await asyncio.wait_for(asyncio.shield(self._ending), LEAVE_S)
        except TimeoutError:
            self.kill()
            await self._ending

    async def _wait(self) -> None:
        """Its end, expected or not."""
        self._code = await self._program.wait()
        if self._outcome is None or self._outcome.done():
            return
        if self.killed:
            self._outcome.set_result(Killed())
        elif self._began:
            self._outcome.set_result(Crashed(describe_exit(self._code)))
        else:
            self._outcome.set_exception(NeverBegan(self._unfit or describe_exit(self._code)))

    def _hear(self, message: FromRunner) -> None:
        match message:
            case Unfit(why):
                self._unfit = why
            case Began():
                self._began = True
            case Noted(progress, lines):
                self._note(progress, lines)
            case _:
                if self._outcome is not None and not self._outcome.done():
                    self._outcome.set_result(message)

    def _note(self, progress: bytes | None, lines: list[tuple[str, str]]) -> None:
        if self._running is None:
            return
        for level, text in lines:
            write: Callable[[str], None] = getattr(self._running.log, level)
            write(text)
        if progress is not None:
            self._running.progress(**msgspec.json.decode(progress))


class ProcessRunner:
    """The processes of one worker. For use on its loop."""

    def __init__(self, app: str, *, most: int, log_format: str = "text", idle_s: float = IDLE_S) -> None:
        self._open = Open(app, log_format)
        self._most = most
        self._idle_s = idle_s
        self._idle: list[Runner] = []
        self._busy: dict[Fence, Runner] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, job: ClaimedJob, running: RunningJob, *, fresh: bool) -> ProcessOutcome:
        """Run a job. `fresh`: in a process that nothing else ever runs in."""
        error: Exception
        for _ in range(STARTS):
            try:
                return await self._run_once(job, running, fresh=fresh)
            except NeverBegan as never_began:
                log.warning("a process for %s was not to be had: %s", job.task, never_began)
                error = never_began
            except OSError as refused:  # no memory, no process numbers, no descriptors
                return Raised(failure=failure_of(refused), lineage=lineage(refused))
        return Raised(failure=failure_of(error), lineage=lineage(error))

    async def _run_once(self, job: ClaimedJob, running: RunningJob, *, fresh: bool) -> ProcessOutcome:
        runner = await self._take(fresh=fresh)
        self._busy[job.fence] = runner
        try:
            if running.aborted is not None:  # while it was started
                return AbortedRun(running.aborted)
            return await runner.perform(job, running)
        finally:
            del self._busy[job.fence]
            self._put_back(runner, fresh=fresh)

    def stop(self, fence: Fence, reason: Abort, *, kill: bool) -> None:
        """Stop a run. One that is still being given a process sees the flag of its `RunningJob`."""
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

    async def _take(self, *, fresh: bool) -> Runner:
        while self._idle and not fresh:
            runner = self._idle.pop()  # the one used last is the warmest
            if runner.alive:
                return runner
            self._dismiss(runner)
        while self._idle and len(self._idle) + len(self._busy) >= self._most:
            self._dismiss(self._idle.pop(0))
        return await Runner.start(self._open)

    def _put_back(self, runner: Runner, *, fresh: bool) -> None:
        if fresh or not runner.alive:
            self._dismiss(runner)
            return
        runner.idle_since = time.monotonic()
        self._idle.append(runner)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)

    def _end_idle(self) -> None:
        """The oldest stand first."""
        self._timer = None
        now = time.monotonic()
        while self._idle and now - self._idle[0].idle_since >= self._idle_s:
            self._dismiss(self._idle.pop(0))
        if self._idle:
            due_s = self._idle[0].idle_since + self._idle_s - now
            self._timer = asyncio.get_running_loop().call_later(max(due_s, 0.01), self._end_idle)

    def _dismiss(self, runner: Runner) -> None:
        leaving = asyncio.create_task(runner.leave(), name="runner leaves")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
