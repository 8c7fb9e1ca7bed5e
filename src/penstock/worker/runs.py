"""One run: a claimed job on its way through this worker."""

from asyncio import Task
from collections.abc import Sequence
from typing import Any

from penstock.model.job import Fence
from penstock.model.run import ClaimedJob, Outcome
from penstock.model.time import Span
from penstock.task.current import RunningJob
from penstock.worker.board import NO_RETRY
from penstock.worker.notes import Notebook, Page
from penstock.worker.terms import Terms


class Run:
    """The one value that passes through every step. Also where its running code's notes go
    (`penstock.task.current.Notes`): an object less for each of a million jobs that note nothing.

    Most fields are set for few runs only. They have their defaults in the class, and no slots: a fresh run
    sets four attributes instead of eighteen (0.4 us)."""

    terms: Terms
    """The task's code and rules; set by resolve."""
    args: Sequence[Any]
    kwargs: dict[str, Any]
    """Set by decode."""
    running: RunningJob
    """What the function sees of it; from begin to end."""
    outcome: Outcome
    """How it ended; set by normalise."""
    handle: Task[None] | None = None
    """The task on the loop that runs it or waits for its process."""
    page: Page | None = None
    """What it noted."""
    apart: bool = False
    """It runs in another process."""
    started_ns: int = 0
    """On the boot clock, as are all moments here; 0: not yet, or never."""
    deadline_ns: int = 0
    """Of its timeout."""
    grace_ns: int = 0
    """When a job that was asked to stop is stopped."""
    due_ns: int = 0
    """When the sweep has to look at it: the next of those two."""
    retry_in: Span = NO_RETRY
    """What a timeout means."""
    ran: Span = 0
    cancelled: bool = False
    """We threw CancelledError into it, or killed its process."""
    timed_out: bool = False
    stuck: bool = False

    def __init__(self, job: ClaimedJob, row: int, notebook: Notebook) -> None:
        self.job = job
        self.fence: Fence = job.fence
        self.row = row  # on the board
        self._notebook = notebook

    def progress(self, value: bytes) -> None:
        """The latest progress. From any thread."""
        self._page().report(value)
        self._notebook.written(self.fence)

    def log(self, level: str, message: str) -> None:
        """One more line. From any thread."""
        self._page().add(level, message)
        self._notebook.written(self.fence)

    def _page(self) -> Page:
        if self.page is None:
            self.page = self._notebook.open(self.job.id, self.fence)
        return self.page
