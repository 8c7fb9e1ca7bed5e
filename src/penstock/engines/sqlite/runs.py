"""The runs that this process has claimed and not yet settled: what settling them will need to know.

Memory only, and only a hint: the statement that uses it checks the fence again, so an entry that is
missing or out of date costs time and never truth.
"""

from typing import NamedTuple

from penstock.model.ids import JobId
from penstock.model.job import Fence

RUNS_KEPT = 100_000
"""More than any process has slots; beyond it the oldest are forgotten."""


class Run(NamedTuple):
    """Where a run's job is."""

    pk: int
    id: JobId
    queue: int


class Runs:
    """Runs by their fence."""

    def __init__(self) -> None:
        self._runs: dict[Fence, Run] = {}

    def add(self, fence: Fence, run: Run) -> None:
        """A job was claimed."""
        self._runs[fence] = run
        if len(self._runs) > RUNS_KEPT:
            del self._runs[next(iter(self._runs))]

    def take(self, job: JobId, fence: Fence) -> Run | None:
        """The run that is about to be settled, if it is known here."""
        run = self._runs.pop(fence, None)
        return run if run is not None and run.id == job else None
