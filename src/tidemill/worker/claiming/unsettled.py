"""Runs that have ended here and whose end the engine does not know yet: what `exchange` carries to it.

Runners put ended runs here and go on: no runner waits for the engine. A wakeup starts the next trip of the
exchange. This module also knows how far a drain has come, because the end of a worker waits for these runs
and for active ones.
"""

from collections.abc import Iterable

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import Release, ReleaseReason
from tidemill.model.time import Span
from tidemill.worker.claiming.run_sums import RunSums
from tidemill.worker.claiming.wakeup import Wakeup
from tidemill.worker.moments import Moments
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.report import Report
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.run import Run


class Unsettled:
    """All on the worker's loop."""

    def __init__(
        self,
        active: dict[Fence, Run],
        held_table: HeldTable,
        notebook: Notebook,
        moments: Moments,
        report: Report,
        sums: RunSums,
    ) -> None:
        self._active = active
        self._held_table = held_table
        self._notebook = notebook
        self._moments = moments
        self._report = report
        self._sums = sums
        self._claim_soon = False
        self.wakeup = Wakeup()
        """Woken when there is something for the exchange to do."""
        self.ended: list[Run] = []
        """Runs with an outcome."""
        self.releases: list[tuple[Run, Release]] = []
        """Runs to be released."""
        self._travelling = 0
        """Runs of the trip that is under way."""
        self._unresolved = 0
        """Runs whose outcome a transaction decides, and is not known yet."""
        self.draining = self._leaving = False
        self.finished = 0
        """Outcomes that were recorded."""
        self.released = 0
        """Runs that had begun and were released, without those whose code asked for it."""

    def settle(self, run: Run) -> None:
        """It has ended; `run.outcome` says how."""
        self.ended.append(run)
        if not self.wakeup.woken:
            self.wakeup.wake()

    def release(self, run: Run, reason: ReleaseReason | None = None, delay: Span | None = None) -> None:
        """Release this run: to its old position, or for a delay if there is one."""
        release = Release(id=run.job.id, fence=run.fence, delay=delay, reason=reason)
        self.releases.append((run, release))
        self.wakeup.wake()

    def forget(self, run: Run) -> None:
        """Its job belongs to another run."""
        self.let_go(run)
        self.wakeup.wake()

    def recorded(self, run: Run) -> None:
        """Its outcome is in the engine already."""
        self.let_go(run)
        self._sums.ended((run,))
        self._count(1)
        self._moments.note("settled")
        self.claim_soon()  # its permits are free, its children may be ready

    def refused(self, run: Run) -> None:
        """The engine refused its outcome: another run has the job."""
        self._report.refused(run)
        self._moments.note("refused")
        self._moments.note("settled")
        self.forget(run)

    def resolving(self) -> None:
        """A transaction decides the outcome of one more run."""
        self._unresolved += 1

    def resolved(self) -> None:
        """One run less waits for its transaction."""
        self._unresolved -= 1
        self.wakeup.wake()

    def claim_soon(self) -> None:
        """There may be something to claim, or the lease is fresh again."""
        self._claim_soon = True
        self.wakeup.wake()

    def take_claim_soon(self) -> bool:
        """Whether `claim_soon` was called since this was last called."""
        soon, self._claim_soon = self._claim_soon, False
        return soon

    def drain(self, *, leave: bool = False) -> None:
        """Claim no more, and end when everything is answered; `leave`: without those that still run."""
        self.draining = True
        self._leaving = self._leaving or leave
        self.wakeup.wake()

    def waits_for_answers_only(self) -> bool:
        """Whether this worker ends as soon as the engine has answered."""
        return self.draining and (self._leaving or not self._active)

    # For the exchange

    def take_ended(self) -> list[Run]:
        """Runs with an outcome, for the next trip."""
        taken = self.ended[:BATCH_LIMIT]
        del self.ended[:BATCH_LIMIT]
        self._travelling = len(taken)
        return taken

    def take_releases(self) -> list[tuple[Run, Release]]:
        """Runs to be released by the next trip."""
        taken = self.releases[:BATCH_LIMIT]
        del self.releases[:BATCH_LIMIT]
        self._travelling = len(taken)
        return taken

    def settled(self, runs: int, *, recorded: int) -> None:
        """The engine has answered for so many runs, and recorded the outcome of so many."""
        self._travelling -= runs
        self._count(recorded)

    def release_answered(self, batch: Iterable[tuple[Run, Release]]) -> None:
        """The engine has answered: these runs are released."""
        for run, release in batch:
            self.let_go(run)
            self.released += run.started_ns != 0 and release.reason not in ("snooze", "late")
            self._travelling -= 1

    def let_go(self, run: Run) -> None:
        """The engine has answered, or the job belongs to another run."""
        self._held_table.let_go(run.row)
        self._notebook.close(run.fence)

    def _count(self, finished: int) -> None:
        """So many more outcomes were recorded."""
        self.finished += finished
        self._held_table.count(finished)

    def __len__(self) -> int:
        """Runs whose end the engine has not answered."""
        return len(self.ended) + len(self.releases) + self._travelling + self._unresolved
