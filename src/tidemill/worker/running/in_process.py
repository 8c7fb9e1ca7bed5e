"""Jobs that run in a process of their own: tasks with `runs_in="process"`, and all suspects.

A suspect may have crashed a process before. It runs in a fresh process of its own, where a crash is proof.
And it starts only after the engine has recorded that: should it take the whole machine with it, that record
is the proof. The held table of this worker shows such runs as not started: they cannot have killed this
process.

**Our own SIGTERM is no fault of the job.** A process that we told to stop may obey in many ways: the signal's
default action ends it, a handler calls `sys.exit`, the code cleans up and something breaks on the way. None
of that is a crash or a failed attempt of the job: the reason of the abort decides what becomes of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from tidemill.engine.protocol import JobsFacet
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import Answer, ClaimedJob, Completed, Crashed, Failed, Note, Started
from tidemill.model.names import qualified_name
from tidemill.task.current import Abort, Aborted, ControlledJob
from tidemill.worker.claiming.until_answered import GaveUp
from tidemill.worker.runner import pool as ended
from tidemill.worker.running.outcomes import Ending, Instead, aborted, retried_after, snoozed
from tidemill.worker.running.run import Run
from tidemill.worker.running.steps import Steps


class Processes(Protocol):
    """What runs a job in a process: `RunnerPool`."""

    async def run(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        *,
        fresh: bool,
        began: Callable[[], None],
        between: tuple[int, int],
    ) -> ended.ProcessOutcome: ...

    def stop(self, fence: Fence, reason: Abort, *, kill: bool) -> None: ...

    async def close(self) -> None: ...


STOPPING = frozenset(
    map(qualified_name, (Aborted, SystemExit, KeyboardInterrupt, asyncio.CancelledError)),
)
"""What code raises when it was told to stop and does."""

WriteUntilAnswered = Callable[[Callable[[], Awaitable[list[Answer]]]], Awaitable[list[Answer]]]
"""Repeats a write to the engine until it is answered."""


class InProcessRunner:
    """Runs jobs in the processes of the pool."""

    def __init__(
        self, steps: Steps, processes: Processes, jobs: JobsFacet, until_answered: WriteUntilAnswered
    ) -> None:
        self._steps = steps
        self._processes = processes
        self._jobs = jobs
        self._until_answered = until_answered
        self._loop = asyncio.get_running_loop()

    def begin(self, run: Run) -> None:
        """Begin the run in a task of its own."""
        run.handle = self._loop.create_task(self._perform(run), name=run.job.task)

    async def _perform(self, run: Run) -> None:
        try:
            ours = not run.job.suspect or await self._announced(run)
        except GaveUp:
            return  # the worker leaves without it; it stays in the held table for the process that retires us
        if not ours:
            self._steps.end(run, Instead.DROP)
            return
        reason = run.running.aborted
        if reason is not None:
            self._steps.end(run, aborted(run, reason))
            return
        outcome = await self._processes.run(
            run.job,
            run.running,
            fresh=run.job.suspect,
            began=lambda: self._began(run),
            # A suspect never finds a process that is warm: it would always be late.
            between=(0, 0) if run.job.suspect else (run.start_ns, run.start_by_ns),
        )
        self._steps.end(run, _normalise(run, outcome))

    def _began(self, run: Run) -> None:
        """Its code is called now. The imports of a new process are no part of the job's time."""
        self._steps.begin_clock(run)
        self._steps.watch(run)

    async def _announced(self, run: Run) -> bool:
        """Record at the engine that it starts. Returns whether the run is still ours."""
        note = Note(id=run.job.id, fence=run.fence, entry=Started())
        (answer,) = await self._until_answered(lambda: self._jobs.write([note]))
        return answer is Answer.APPLIED


def _normalise(run: Run, outcome: ended.ProcessOutcome) -> Ending:
    """What the process did, as an outcome."""
    reason = run.running.aborted
    if reason is not None and _is_effect(outcome, reason):
        return aborted(run, reason)
    match outcome:
        case ended.Returned(result=result, completing=completing):
            run.running.completing = completing
            return Completed(result=result)
        case ended.Raised(snooze=int(delay)):
            return snoozed(run, delay)
        case ended.Raised(failure=failure, retry_after=int(delay)):
            return retried_after(run, failure, delay)
        case ended.Raised(failure=failure, lineage=lineage):
            final = failure.kind == "payload"
            return Failed(failure=failure, retry_in=None if final else run.rules.retry_in(run.job, lineage))
        case ended.AbortedRun():
            return aborted(run, Abort(outcome.reason))
        case ended.CameLate():
            return Instead.LATE
        case ended.Killed():
            return aborted(run, Abort.DRAIN)
        case ended.RunnerCrashed(message=message):
            return Crashed(message=message)


def _is_effect(outcome: ended.ProcessOutcome, reason: Abort) -> bool:
    """Whether our abort caused it. At a drain whatever was raised counts as that: the job will run again, and
    shows then what it is worth. (One that was cancelled on request keeps its error: it will not.)"""
    match outcome:
        case ended.Returned():
            return False
        case ended.Raised(failure=failure, lineage=lineage):
            if failure.kind == "payload":  # no attempt would change that, and its work may have been done
                return False
            if (
                outcome.snooze is not None or outcome.retry_after is not None
            ):  # it says itself when it goes on
                return False
            return reason is Abort.DRAIN or not STOPPING.isdisjoint(lineage)
        case _:
            return True
