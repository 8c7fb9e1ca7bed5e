"""The steps that a runner takes (`running.steps.Steps`): the code of a run starts, and has ended."""

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.run import Completed
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.process.held_table import NO_RETRY, HeldTable
from tidemill.worker.running.endings import Endings
from tidemill.worker.running.in_transaction import TransactionOutcomes
from tidemill.worker.running.outcomes import Ending
from tidemill.worker.running.run import Run
from tidemill.worker.running.stopping import Stopping
from tidemill.worker.running.task_rules import TIMEOUT_LINEAGE


class RunSteps:
    """Start, and end. Every run that began is ended here exactly once, and only when its code has ended."""

    def __init__(
        self,
        held_table: HeldTable,
        stops: Stopping,
        unsettled: Unsettled,
        endings: Endings,
        resolver: TransactionOutcomes,
    ) -> None:
        self._mark_started, self._mark_ended = held_table.start, held_table.ended
        self._stops = stops
        self._deadlines = stops.deadlines
        self._unsettled = unsettled
        self._endings = endings
        self._resolver = resolver

    def start(self, run: Run) -> None:
        """Its function is about to be called in this process. From any thread."""
        self.begin_clock(run)
        self._mark_started(
            run.row, started_ns=run.started_ns, deadline_ns=run.deadline_ns, retry_in=run.retry_in
        )

    def begin_clock(self, run: Run) -> None:
        """Timeouts run from here."""
        run.started_ns = now_ns = boot_ns()
        timeout = run.job.timeout or run.rules.timeout
        if timeout is not None:
            run.deadline_ns = run.due_ns = now_ns + 1_000 * timeout
            retry_in = run.rules.retry_in(run.job, TIMEOUT_LINEAGE)
            run.retry_in = NO_RETRY if retry_in is None else retry_in

    def watch(self, run: Run) -> None:
        """Keep its deadline. (A thread's is found by the next sweep: its code has only a flag to see.)"""
        if run.due_ns:
            self._deadlines.watch(run.due_ns)

    def end(self, run: Run, ending: Ending) -> None:
        """Settle, free the slot, report."""
        now_ns = boot_ns()
        if run.started_ns:
            run.ran = (now_ns - run.started_ns) // 1_000
            self._mark_ended(run.row)  # not stuck, however long its outcome waits for the engine
        run.handle = None
        if run.stuck:
            self._stops.ended(run)
        completing = run.running.completing
        del run.running  # it knows the run: a circle would wait for the garbage collector
        if completing:
            self._resolver.begin(run, ending)
            run.slots.leave(run, now_ns)
            return
        if type(ending) is Completed:
            run.outcome = ending
            self._unsettled.settle(run)
        else:
            self._endings.settle(run, ending)
        run.slots.leave(run, now_ns)
        self._endings.report(run, ending, now_ns)
