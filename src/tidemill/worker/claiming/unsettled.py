"""Runs that have ended here and of which the engine has not heard yet: what `exchange` carries there.

Whoever runs jobs puts them here and goes on: nobody waits for the engine. A bell wakes the exchange. Here is
also known how far a drain has come, because the end of a worker waits for these and for what still runs.
"""

from collections.abc import Iterable

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.jobs.job import Fence
from tidemill.model.time import Span
from tidemill.worker.claiming.wakeup import Wakeup
from tidemill.worker.moments import Moments
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.report import Report
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.run import Run


class Unsettled:
    """All on the worker's loop."""

    def __init__(
        self, active: dict[Fence, Run], board: HeldTable, notebook: Notebook, moments: Moments, report: Report
    ) -> None:
        self._active = active
        self._board = board
        self._notebook = notebook
        self._moments = moments
        self._report = report
        self._looked = False
        self.bell = Wakeup()
        """Rung when there is something for the exchange to do."""
        self.ended: list[Run] = []
        """With an outcome."""
        self.returned: list[tuple[Run, Span | None]] = []
        """To be released, after a delay."""
        self._travelling = 0
        """Those of the trip that is under way."""
        self._unresolved = 0
        """Runs of which a transaction decides, and nobody knows yet how."""
        self.draining = self._leaving = False
        self.finished = 0
        """Outcomes that were recorded."""
        self.released = 0
        """Runs that had begun and were given back."""

    def settle(self, run: Run) -> None:
        """It has ended; `run.outcome` says how."""
        self.ended.append(run)
        if not self.bell.rung:
            self.bell.ring()

    def give_back(self, run: Run, delay: Span | None = None) -> None:
        """Release it."""
        self.returned.append((run, delay))
        self.bell.ring()

    def forget(self, run: Run) -> None:
        """It belongs to somebody else."""
        self.let_go(run)
        self.bell.ring()

    def recorded(self, run: Run) -> None:
        """Its outcome is in the engine already."""
        self.let_go(run)
        self._count(1)
        self._moments.note("settled")
        self.look()  # its permits are free, its children may be ready

    def refused(self, run: Run) -> None:
        """Its outcome was not wanted: somebody else has the job."""
        self._report.refused(run)
        self._moments.note("refused")
        self._moments.note("settled")
        self.forget(run)

    def resolving(self) -> None:
        """A transaction decides about one more."""
        self._unresolved += 1

    def resolved(self) -> None:
        """One less of those that a transaction decides."""
        self._unresolved -= 1
        self.bell.ring()

    def look(self) -> None:
        """There may be something to claim, or the lease is fresh again."""
        self._looked = True
        self.bell.ring()

    def looked(self) -> bool:
        """Whether `look` was called since this was last asked."""
        looked, self._looked = self._looked, False
        return looked

    def drain(self, *, leave: bool = False) -> None:
        """Claim no more, and end when everything is answered; `leave`: without those that still run."""
        self.draining = True
        self._leaving = self._leaving or leave
        self.bell.ring()

    def waits_for_answers_only(self) -> bool:
        """Whether nothing but the engine keeps this worker from its end."""
        return self.draining and (self._leaving or not self._active)

    # For the exchange

    def take_ended(self) -> list[Run]:
        """Those with an outcome that go with the next trip."""
        taken = self.ended[:BATCH_LIMIT]
        del self.ended[:BATCH_LIMIT]
        self._travelling = len(taken)
        return taken

    def take_returned(self) -> list[tuple[Run, Span | None]]:
        """Those that are released by the next trip."""
        taken = self.returned[:BATCH_LIMIT]
        del self.returned[:BATCH_LIMIT]
        self._travelling = len(taken)
        return taken

    def settled(self, runs: int, *, recorded: int) -> None:
        """The engine has answered for so many, and recorded the outcome of these."""
        self._travelling -= runs
        self._count(recorded)

    def gave_back(self, runs: Iterable[Run]) -> None:
        """The engine has them again."""
        for run in runs:
            self.let_go(run)
            self.released += run.started_ns != 0
            self._travelling -= 1

    def let_go(self, run: Run) -> None:
        """The engine has answered, or nobody wants to know."""
        self._board.let_go(run.row)
        self._notebook.close(run.fence)

    def _count(self, finished: int) -> None:
        """So many more outcomes were recorded."""
        self.finished += finished
        self._board.count(finished)

    def __len__(self) -> int:
        """Runs whose end the engine has not answered."""
        return len(self.ended) + len(self.returned) + self._travelling + self._unresolved
