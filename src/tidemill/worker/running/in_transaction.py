"""Runs that completed themselves: what became of their transaction.

A task that calls `complete(transaction=...)` leaves its outcome to that transaction, which only its own code
commits. When the code has ended, however it ended, the engine is asked for the run's fate:

    settled   it committed: completed, whatever the code did afterwards (an exception is logged, no more)
    free      it did not: the run ends as any other. A function that returned all the same has failed, because
              its rows are not there
    open      not decided: some transaction holds the job. Asked again, with growing pauses
    gone      another run has the job

So it does not matter whether the reply of a COMMIT was lost, whether the code was cancelled in the middle of
it, or whether its process died: `settled_fence` in the engine knows. And this worker never waits for a
transaction that was forgotten: no settle or release is sent before the engine says that no transaction holds
the job. The run stays in the held table until then. Should this worker end first, the process that retires it
gets the same answer.
"""

import asyncio
from collections.abc import Callable

from tidemill.engine.protocol import TransactionsFacet
from tidemill.model.errors import NotCommitted
from tidemill.model.jobs.run import Completed, Fate
from tidemill.worker.claiming.unsettled import Unsettled
from tidemill.worker.claiming.until_answered import GIVE_UP_S, GaveUp, UntilAnswered
from tidemill.worker.report import Report
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.outcomes import Ending, failed
from tidemill.worker.running.run import Run

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 1.0
WARN_AFTER_S = 5.0
"""A transaction that is still open so long after its code has ended was forgotten: that is logged."""


class TransactionOutcomes:
    """Asks for fates, and ends runs accordingly. On the worker's loop."""

    def __init__(
        self,
        transactions: TransactionsFacet | None,
        unsettled: Unsettled,
        until_answered: UntilAnswered,
        notebook: Notebook,
        report: Report,
        *,
        go_on: Callable[[Run, Ending], None],
    ) -> None:
        self._transactions = transactions
        self._unsettled = unsettled
        self._until_answered = until_answered
        self._notebook = notebook
        self._report = report
        self._go_on = go_on
        self._asking: set[asyncio.Task[None]] = set()

    def begin(self, run: Run, ending: Ending) -> None:
        """Its code has ended."""
        self._unsettled.resolving()
        task = asyncio.get_running_loop().create_task(self._resolve(run, ending), name="resolve")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def stop(self) -> None:
        """The worker has ended."""
        for task in self._asking:
            task.cancel()

    async def _resolve(self, run: Run, ending: Ending) -> None:
        try:
            match await self._fate(run):
                case Fate.SETTLED:
                    self._report.completed_itself(run, ending)
                    self._unsettled.recorded(run)
                case Fate.FREE:
                    self._notebook.release(run.fence)
                    self._go_on(run, _uncommitted(run) if isinstance(ending, Completed) else ending)
                case _:
                    self._unsettled.refused(run)
        except GaveUp:
            pass  # it stays in the held table for the process that retires us
        finally:
            self._unsettled.resolved()  # whatever happened: a drain must not wait for this for ever

    async def _fate(self, run: Run) -> Fate:
        """How its transaction ended, once it has."""
        transactions = self._transactions
        assert transactions is not None, "complete() was refused where there are none"
        loop = asyncio.get_running_loop()
        began, warned, pause_s = loop.time(), False, FIRST_PAUSE_S
        while True:
            (fate,) = await self._until_answered(lambda: transactions.fates([(run.job.id, run.fence)]))
            if fate is not Fate.OPEN:
                return fate
            waited_s = loop.time() - began
            if self._unsettled.waits_for_answers_only() and waited_s > GIVE_UP_S:
                raise GaveUp
            if waited_s > WARN_AFTER_S and not warned:
                self._report.transaction_open(run, waited_s)
                warned = True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _uncommitted(run: Run) -> Ending:
    error = NotCommitted(
        "complete() was called, but its transaction was rolled back or left without a commit: commit before "
        "the function returns"
    )
    return failed(run, error)
