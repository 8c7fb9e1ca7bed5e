"""The last steps of a run: its ending goes on its way to the engine, and is logged."""

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.run import Completed
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.report import Report
from tidemill.worker.running.outcomes import Ending, Instead, SnoozedRun
from tidemill.worker.running.run import Run


class Endings:
    """Settles and reports."""

    def __init__(self, unsettled: Unsettled, report: Report) -> None:
        self._unsettled = unsettled
        self._report = report
        self._verbose = report.verbose

    def settle(self, run: Run, ending: Ending) -> None:
        """Record the outcome, release the run, or forget it."""
        if ending is Instead.RELEASE:
            self._unsettled.release(run, "drain")
        elif ending is Instead.DROP:
            self._unsettled.forget(run)
        elif ending is Instead.LATE:
            self._unsettled.release(run, "late")
        elif isinstance(ending, SnoozedRun):
            self._unsettled.release(run, "snooze", ending.delay)
        else:
            run.outcome = ending
            self._unsettled.settle(run)

    def report(self, run: Run, ending: Ending, now_ns: int) -> None:
        """Log the ending, if people should know of it."""
        if self._verbose or type(ending) is not Completed or 0 < run.deadline_ns < now_ns:
            self._report.ended(run, ending)

    def go_on(self, run: Run, ending: Ending) -> None:
        """No transaction has decided the outcome: the run ends as any other."""
        self.settle(run, ending)
        self.report(run, ending, boot_ns())
