"""What stops running code.

| reason | on the loop | in a thread | in a process |
|---|---|---|---|
| cancel requested | flag; after `cancel_grace` CancelledError | flag | SIGTERM; after the grace SIGKILL |
| timeout | flag and CancelledError | flag; 5 s later it is *stuck* | SIGKILL |
| drain's deadline | flag and CancelledError | flag | SIGTERM, then SIGKILL |
| lease lost, under a limit | as timeout | as timeout | as timeout |
| lease lost, others | nothing | nothing | nothing |

"As timeout" is meant literally: the moment of the loss becomes the run's deadline, here and in the held
table, so that code which does not stop is stuck in the same way and ended by the same hand.

After a drain's deadline runs are released as their code ends; a thread's only when its process has ended.
Those that run on after a lost lease offer their outcome under the old fence, which the engine refuses.

Authority: the engine says which runs were requested to stop and which are lost (by way of the heartbeats).
The boot clock says which are past their timeout. The supervisor says when the drain ends. Nothing here
settles anything: a run ends only when its code has ended, and then `outcomes` reads the reason. Until then
its row stays in the held table and its permits stay taken, so that no other worker runs it beside code that
still does.

A thread cannot be stopped, and async code may ignore CancelledError. Past its timeout by `stuck_after` such a
run is stuck: this process takes no more jobs, and its supervisor, which sees the deadline in the held table,
gives the others a grace and kills it. A worker without a supervisor goes on with the slots that are left.
"""

from typing import Protocol

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.job import Fence
from tidemill.task.current import Abort
from tidemill.worker.config import WorkerConfig
from tidemill.worker.moments import Moments
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.report import Report
from tidemill.worker.running.deadlines import Deadlines
from tidemill.worker.running.run import Run


class Stoppable(Protocol):
    """Processes that run jobs."""

    def stop(self, fence: Fence, reason: Abort, *, kill: bool) -> None: ...


class Stopping:
    """Stops runs, gently or not."""

    def __init__(
        self,
        active: dict[Fence, Run],
        held_table: HeldTable,
        config: WorkerConfig,
        report: Report,
        moments: Moments,
        processes: Stoppable | None,
    ) -> None:
        self._active = active
        self._held_table = held_table
        self._report = report
        self._moments = moments
        self._processes = processes
        self._stuck_ns = round(config.stuck_after_s * 1e9)
        grace_s = config.cancel_grace_s
        self._grace_ns = None if grace_s is None else round(grace_s * 1e9)
        self.deadlines = Deadlines(active, self.due)
        self.stuck: set[Fence] = set()

    def request_stop(self, run: Run) -> None:
        """Its stop was requested. The request may come again: only the first one counts."""
        if run.running.aborted is not None:
            return
        run.running.abort(Abort.CANCEL)
        if run.apart:
            self._signal(run, kill=False)
        if self._grace_ns is not None and run.handle is not None:
            run.grace_ns = boot_ns() + self._grace_ns
            run.due_ns = _next_due(run, self._stuck_ns)
            self.deadlines.watch(run.due_ns)

    def lose(self, run: Run) -> None:
        """The run is lost. If its job is under a limit, another run may already have its permit."""
        # Of a run that completes itself the engine says so when it does.
        if not run.job.limited or run.running.completing:
            return
        self.abandon(run)
        if not run.timed_out:
            run.timed_out, run.deadline_ns = True, boot_ns()
            self._write_deadline(run)
            run.due_ns = _next_due(run, self._stuck_ns)
            self.deadlines.watch(run.due_ns)

    def abandon(self, run: Run) -> None:
        """Its outcome no longer matters."""
        run.running.abort(Abort.LOST)
        self._force(run)

    def drain(self, *, kill: bool) -> None:
        """The deadline of the drain has come (`kill`: and its grace is over)."""
        for run in list(self._active.values()):
            run.running.abort(Abort.DRAIN)
            if run.apart and not kill:
                self._signal(run, kill=False)
            else:
                self._force(run)

    def due(self, run: Run, now_ns: int) -> None:
        """The sweep found a run whose moment has come."""
        if run.grace_ns and now_ns >= run.grace_ns:
            run.grace_ns = 0
            self._force(run)
        if run.deadline_ns and now_ns >= run.deadline_ns:
            if not run.timed_out:
                run.timed_out = True
                run.running.abort(Abort.TIMEOUT)
                self._force(run)
            elif not run.stuck and now_ns >= run.deadline_ns + self._stuck_ns:
                run.stuck = True
                self.stuck.add(run.fence)
                self._write_deadline(run)  # once more: a thread that was just starting may have erased it
                self._report.stuck(run)
                self._moments.note("stuck")
        run.due_ns = _next_due(run, self._stuck_ns)

    def ended(self, run: Run) -> None:
        """It stopped by itself or by us."""
        if run.stuck:
            self.stuck.discard(run.fence)

    def _write_deadline(self, run: Run) -> None:
        """Let the supervisor see the deadline. (Code in a process of its own does not concern this process. A
        run that has not begun checks the flag itself.)"""
        if run.started_ns and not run.apart:
            self._held_table.start(
                run.row, started_ns=run.started_ns, deadline_ns=run.deadline_ns, retry_in=run.retry_in
            )

    def _force(self, run: Run) -> None:
        """CancelledError on the loop, SIGKILL for a process; a thread has only the flag."""
        if run.apart:
            run.cancelled = True
            self._signal(run, kill=True)
        elif run.handle is not None and run.started_ns:  # one that has not begun checks the flag itself
            run.cancelled = True
            run.handle.cancel()

    def _signal(self, run: Run, *, kill: bool) -> None:
        if self._processes is not None:
            self._processes.stop(run.fence, run.running.aborted or Abort.CANCEL, kill=kill)


def _next_due(run: Run, stuck_ns: int) -> int:
    """The earliest moment at which something has to happen to it; 0: none."""
    deadline_ns = run.deadline_ns
    if deadline_ns and run.timed_out:
        deadline_ns = 0 if run.stuck else deadline_ns + stuck_ns
    return min((moment for moment in (run.grace_ns, deadline_ns) if moment), default=0)
