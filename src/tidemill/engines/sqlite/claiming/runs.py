"""The runs that this process has claimed and not yet settled: where their jobs are.

Memory only, and only a hint: what uses it finds the run by its position and its fence in the store, so an
entry that is missing costs time and never truth. An entry cannot be wrong: it is made after the commit of
the claim, and no pk ever comes twice.
"""

from tidemill.model.ids import JobId

RUNS_KEPT = 100_000
"""More than any process has slots; beyond it the oldest are forgotten."""


class ClaimedRuns:
    """The pks of running jobs by their id."""

    def __init__(self) -> None:
        self._pks: dict[JobId, int] = {}

    def add(self, pks: dict[JobId, int]) -> None:
        """Jobs were claimed."""
        self._pks.update(pks)
        while len(self._pks) > RUNS_KEPT:
            del self._pks[next(iter(self._pks))]

    def take(self, job: JobId) -> int | None:
        """Where a job is whose run is about to be settled, if it is known here."""
        return self._pks.pop(job, None)
