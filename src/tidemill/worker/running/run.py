"""One run: a claimed job on its way through this worker."""

from asyncio import Task
from collections.abc import Sequence
from typing import Any, Protocol

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import TransactionsFacet
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import ClaimedJob, Note, Outcome
from tidemill.model.time import Span
from tidemill.task.current import ControlledJob
from tidemill.worker.process.held_table import NO_RETRY
from tidemill.worker.running.notes import Notebook, RunNotes
from tidemill.worker.running.task_rules import TaskRules


class TakesBack(Protocol):
    """The slots that a run leaves when it ends."""

    def leave(self, run: "Run", now_ns: int) -> None: ...


class Run:
    """The one value that passes through every step. Also where its running code's notes go
    (`tidemill.task.current.Notes`): an object less for each of a million jobs that note nothing.

    Moments are nanoseconds of the boot clock; 0: none."""

    __slots__ = (
        "_notebook",
        "apart",
        "args",
        "cancelled",
        "deadline_ns",
        "due_ns",
        "fence",
        "grace_ns",
        "handle",
        "job",
        "kwargs",
        "outcome",
        "page",
        "ran",
        "retry_in",
        "row",
        "rules",
        "running",
        "slots",
        "start_by_ns",
        "start_ns",
        "started_ns",
        "stuck",
        "timed_out",
    )

    rules: TaskRules
    """The task's code and rules; set by resolve."""
    args: Sequence[Any]
    kwargs: dict[str, Any]
    """Set by decode."""
    running: ControlledJob
    """What the function sees of it; from begin to end."""
    slots: TakesBack
    """Where it takes up a slot; set when it gets one."""
    outcome: Outcome
    """How it ended; set by normalise."""
    handle: Task[None] | None
    """The task on the loop that runs it or waits for its process."""
    page: RunNotes | None
    """What it noted."""

    def __init__(self, job: ClaimedJob, row: int, notebook: Notebook) -> None:
        self.job = job
        self.fence: Fence = job.fence
        self.row = row  # in the held table
        self._notebook = notebook
        self.handle = self.page = None
        self.started_ns = self.deadline_ns = 0
        self.start_ns = self.start_by_ns = 0  # under a rate: when it starts, and after when it does not
        self.grace_ns = 0  # when a job that was requested to stop is forced to
        self.due_ns = 0  # when the sweep has to act on it: the next of deadline and grace
        self.retry_in: Span = NO_RETRY  # what a timeout means
        self.ran: Span = 0
        self.apart = False  # it runs in another process
        self.cancelled = False  # we threw CancelledError into it, or killed its process
        self.timed_out = self.stuck = False

    def late(self) -> bool:
        """Whether it is too late for the permit of its rate."""
        return self.start_by_ns != 0 and boot_ns() > self.start_by_ns

    def progress(self, value: bytes) -> None:
        """The latest progress. From any thread."""
        self._page().report(value)
        self._notebook.written(self.fence)

    def log(self, level: str, message: str) -> None:
        """One more line. From any thread."""
        self._page().add(level, message)
        self._notebook.written(self.fence)

    def _page(self) -> RunNotes:
        if self.page is None:
            self.page = self._notebook.open(self.job.id, self.fence)
        return self.page

    # What `RunningJob.complete` needs (`tidemill.task.current.Means`)

    def encode_result(self, value: object) -> bytes | None:
        """As it is stored."""
        return self.rules.encode_result(value)

    def ran_so_far(self) -> Span:
        return (boot_ns() - self.started_ns) // 1_000 if self.started_ns else 0

    def hold(self) -> tuple[TransactionsFacet | None, list[Note]]:
        """From any thread."""
        return self._notebook.transactions, self.hold_notes()

    async def ahold(self) -> tuple[TransactionsFacet | None, list[Note]]:
        return self.hold()

    def hold_notes(self) -> list[Note]:
        """What it noted and is not known to be written; from now on it waits."""
        return self._notebook.hold(self.fence)
