"""One runner process, as its worker process sees it."""

import asyncio
import signal
from collections.abc import Callable

import msgspec

from tidemill.model.jobs.run import ClaimedJob
from tidemill.task.current import Abort, ControlledJob
from tidemill.worker.member.spawn import Program, describe_exit, tidemill
from tidemill.worker.runner.messages import (
    Began,
    Completing,
    FromRunner,
    HoldAnswer,
    Killed,
    Noted,
    Open,
    Perform,
    ProcessOutcome,
    RunnerCannotLoad,
    RunnerCrashed,
    Stop,
)

COMMAND = tidemill("_runner")
BEGIN_S = 60.0
"""How long a process may import before it calls a job's code. The job's own timeout counts from then."""
LEAVE_S = 5.0
"""How long a process may take to end when it was told to, before it is killed."""


class NeverBegan(Exception):
    """The process died before it called the job's code: not the job's doing."""


class RunnerProcess:
    """One process that runs jobs, one at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.jobs = 0
        """How many it was given."""
        self.killed = False
        self._program: Program
        self._ending: asyncio.Task[None]
        self._code: int | None = None
        self._cannot_load = ""
        self._began = False
        self._on_began: Callable[[], None] = lambda: None
        self._running: ControlledJob | None = None
        self._outcome: asyncio.Future[ProcessOutcome] | None = None

    @classmethod
    async def start(cls, opening: Open) -> "RunnerProcess":
        """Execute it. `OSError` where that is not possible now."""
        runner = cls()
        runner._program = await Program.start(COMMAND, FromRunner, runner._receive)
        runner._program.send(opening)
        runner._ending = asyncio.create_task(runner._wait(), name="runner's end")
        return runner

    @property
    def pid(self) -> int:
        return self._program.pid

    @property
    def alive(self) -> bool:
        return not (self.killed or self._cannot_load or self._program.ended)

    async def perform(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        began: Callable[[], None],
        between: tuple[int, int] = (0, 0),
    ) -> ProcessOutcome:
        """Run one job, or `NeverBegan`. If whoever waits for it is cancelled, the process is killed."""
        if self._code is not None:
            raise NeverBegan(self._cannot_load or describe_exit(self._code))
        loop = asyncio.get_running_loop()
        self.jobs += 1
        self._began, self._on_began, self._running = False, began, running
        self._outcome = loop.create_future()
        if not self._program.send(
            Perform(job, *between)
        ):  # it ends, or is of no use: its last message may say why
            self._program.kill()
        patience = loop.call_later(BEGIN_S, self._lose_patience)
        try:
            return await self._outcome
        except asyncio.CancelledError:
            self.kill()
            raise
        finally:
            patience.cancel()
            self._running = self._outcome = None

    def stop(self, reason: Abort, *, kill: bool) -> None:
        """Tell the code to stop, or kill the process."""
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
            self._outcome.set_result(RunnerCrashed(describe_exit(self._code)))
        else:
            self._outcome.set_exception(NeverBegan(self._cannot_load or describe_exit(self._code)))

    def _lose_patience(self) -> None:
        if not self._began:
            self._cannot_load = f"it did not begin within {BEGIN_S:g} s"
            self._program.kill()

    def _receive(self, message: FromRunner) -> None:
        match message:
            case RunnerCannotLoad(why):
                self._cannot_load = why
            case Began():
                self._began = True
                self._on_began()
            case Noted(progress, lines):
                self._note(progress, lines)
            case Completing():
                self._program.send(HoldAnswer(self._running.leave_to_transaction() if self._running else []))
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
