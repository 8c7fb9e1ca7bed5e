"""The job that runs here and now: what running code can ask, and how it says how far it is.

`current_job()` works in async tasks, in threads and in processes alike: the runner of a job sets one
context variable. `progress` and `log` only buffer; the worker writes them under the run's fence, at least
once a second and before the outcome.

`complete` ends the run from inside, in a transaction of the running code's own: that transaction alone
decides, and the runner of the job asks the engine afterwards what became of it (`TransactionOutcomes`).
"""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from tidemill.engine import connections
from tidemill.engine.protocol import Script, TransactionsFacet
from tidemill.model.errors import (
    AlreadyCompleted,
    BadInput,
    NoCurrentJob,
    NoTransaction,
    StaleRun,
    SyncInLoop,
    TidemillError,
)
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.run import Answer, ClaimedJob, Completed, Note, Settlement
from tidemill.model.schedules.firing import then_of
from tidemill.model.time import Span, moment_of
from tidemill.task import codec


class Abort(StrEnum):
    """Why running code should stop."""

    CANCEL = "cancel"
    """An operator or a program requested it."""
    TIMEOUT = "timeout"
    """It has run longer than it may."""
    DRAIN = "drain"
    """The worker is going down and its deadline has come."""
    LOST = "lease lost"
    """The job was given to another run; this outcome will be refused."""


class Aborted(Exception):
    """Raised by a task to stop early. On a drain the job is released without using an attempt."""

    def __init__(self, reason: Abort | str = "") -> None:
        super().__init__(str(reason))
        self.reason = reason


class Notes(Protocol):
    """Where a run's progress and log lines go. Buffers only; may be called from any thread."""

    def progress(self, value: bytes) -> None: ...

    def log(self, level: str, message: str) -> None: ...


class Means(Protocol):
    """What `complete` needs of the runner of the job. From the thread or the loop of the running code."""

    def encode_result(self, value: object) -> bytes | None:
        """As it is stored."""
        ...

    def ran_so_far(self) -> Span: ...

    def hold(self) -> tuple[TransactionsFacet | None, list[Note]]:
        """The facet, and what the run noted and is not known to be written. From now on its notes wait: a
        write about a job that a transaction holds would wait for that transaction."""
        ...

    async def ahold(self) -> tuple[TransactionsFacet | None, list[Note]]: ...

    def hold_notes(self) -> list[Note]:
        """The same without the facet, for a job that runs in another process."""
        ...


class JobLog:
    """The job's own log, kept with the job: `current_job().log.info("...")`."""

    __slots__ = ("_notes",)

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def debug(self, message: str, *args: object) -> None:
        self._write("debug", message, args)

    def info(self, message: str, *args: object) -> None:
        self._write("info", message, args)

    def warning(self, message: str, *args: object) -> None:
        self._write("warning", message, args)

    def error(self, message: str, *args: object) -> None:
        self._write("error", message, args)

    def _write(self, level: str, message: str, args: tuple[object, ...]) -> None:
        self._notes.log(level, _formatted(message, args) if args else str(message))


def _formatted(message: object, args: tuple[object, ...]) -> str:
    """As `logging` does it, a single mapping included. A line whose format and arguments do not fit is kept
    as it is, with the arguments behind it: a slip in a log line is no reason to fail a job."""
    text = str(message)
    values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
    try:
        return text % values
    except Exception:  # of the format, or of an argument's own __str__
        return f"{text} {' '.join(map(_shown, args))}"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


class RunningJob:
    """A job, seen from inside."""

    __slots__ = ("_aborted", "_completing", "_job", "_log", "_means", "_notes")

    def __init__(self, job: ClaimedJob, notes: Notes, means: Means | None = None) -> None:
        self._job = job
        self._notes = notes
        self._means = means
        self._completing = False
        self._log: JobLog | None = None
        self._aborted: Abort | None = None

    def __repr__(self) -> str:
        return f"<RunningJob {self.task} {self.id} attempt {self.attempt}/{self.max_attempts}>"

    @property
    def id(self) -> str:
        return show_id(self._job.id)

    @property
    def job_id(self) -> JobId:
        """The id's 16 bytes."""
        return self._job.id

    @property
    def task(self) -> str:
        return self._job.task

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def priority(self) -> int:
        return self._job.priority

    @property
    def key(self) -> str | None:
        return self._job.key

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        return self._job.max_attempts

    @property
    def snoozes(self) -> int:
        """How often it has raised `Snooze` so far."""
        return self._job.snoozes

    @property
    def fence(self) -> int:
        """Grows with every run in the namespace: hand it to systems that can refuse an older one."""
        return self._job.fence

    @property
    def created_at(self) -> datetime:
        return moment_of(self._job.created_at)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job: hand it to payment providers and the like."""
        return f"{self._job.task}:{self.id}"

    @property
    def headers(self) -> dict[str, Any]:
        """What travelled with the job: tags, trace context, origin."""
        headers: dict[str, Any] = {} if self._job.headers is None else msgspec.json.decode(self._job.headers)
        return headers

    @property
    def log(self) -> JobLog:
        """Lines that are kept with the job."""
        if self._log is None:
            self._log = JobLog(self._notes)
        return self._log

    @property
    def aborted(self) -> Abort | None:
        """None while all is well, else the reason to stop."""
        return self._aborted

    def check(self) -> None:
        """Raise `Aborted` if this job should stop."""
        if self._aborted is not None:
            raise Aborted(self._aborted)

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """How far it is. Only the latest is kept."""
        for number in (done, total):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
                raise BadInput(f"progress is given in numbers, not {type(number).__name__}")
        self._notes.progress(codec.encode({"done": done, "total": total, "message": message}))

    def complete(self, result: object = None, *, transaction: object) -> None:
        """Complete this job in a transaction of your own: it is completed, with this result, if and only if
        that commits. Call it last, commit, and return; what the function returns then is not used.

        `transaction` is what `using(transaction=)` takes. `StaleRun`: this run no longer holds its job.
        Nothing was written; let the error end the transaction. A function that called this and whose
        transaction did not commit has failed."""
        if asyncio._get_running_loop() is not None:
            raise SyncInLoop(
                "complete() blocks, and an event loop runs in this thread: use `await acomplete(...)`"
            )
        means, encoded = self._encoded(result)
        was_completing, self._completing = self._completing, True
        try:
            script = self._script(*means.hold(), encoded)
            self._judge(connections.play(transaction, script, twin="acomplete"))
        except TidemillError as error:  # nothing was written
            self._completing = was_completing or isinstance(error, AlreadyCompleted)
            raise

    async def acomplete(self, result: object = None, *, transaction: object) -> None:
        """`complete` for async code."""
        means, encoded = self._encoded(result)
        was_completing, self._completing = self._completing, True
        try:
            script = self._script(*await means.ahold(), encoded)
            self._judge(await connections.aplay(transaction, script))
        except TidemillError as error:
            self._completing = was_completing or isinstance(error, AlreadyCompleted)
            raise

    def _encoded(self, result: object) -> tuple[Means, bytes | None]:
        if self._means is None:
            raise NoTransaction("this job cannot be completed in a transaction here")
        return self._means, self._means.encode_result(result)

    def _script(
        self, transactions: TransactionsFacet | None, notes: list[Note], result: bytes | None
    ) -> Script[Answer]:
        if transactions is None:
            raise NoTransaction("complete() needs PostgreSQL, or SQLite in a file")
        assert self._means is not None
        job, outcome = self._job, Completed(result=result)
        settlement = Settlement(
            id=job.id,
            fence=job.fence,
            outcome=outcome,
            ran=self._means.ran_so_far(),
            then=None if job.schedule is None else then_of(job.schedule, job.headers, outcome),
        )
        return transactions.complete(settlement, notes)

    def _judge(self, answer: Answer) -> None:
        if answer is Answer.STALE:
            raise StaleRun(
                f"{self!r} no longer holds its job, which was given to another worker or has ended: nothing "
                "was written; roll the transaction back"
            )
        if answer is Answer.ALREADY:
            raise AlreadyCompleted(
                f"{self!r} was completed before, and its rows were committed then: nothing was written; roll "
                "the transaction back"
            )


class ControlledJob(RunningJob):
    """The same in the hands of the runner of the job. Running code has no use for what is added here."""

    __slots__ = ()

    @property
    def completing(self) -> bool:
        """`complete` was called: a transaction decides about this run."""
        return self._completing

    @completing.setter
    def completing(self, completing: bool) -> None:
        self._completing = completing

    def abort(self, reason: Abort) -> None:
        """Ask the running code to stop. The first reason stays."""
        if self._aborted is None:
            self._aborted = reason

    def leave_to_transaction(self) -> list[Note]:
        """Its code runs in another process and is about to complete it there. What it still had to note."""
        self._completing = True
        return self._means.hold_notes() if self._means is not None else []


CURRENT: ContextVar[RunningJob] = ContextVar("tidemill_current_job")
"""Set by the runner of a job, around the call of its function."""


def current_job() -> RunningJob:
    """The job that runs here, or `NoCurrentJob`."""
    job = CURRENT.get(None)
    if job is None:
        raise NoCurrentJob("no job runs here: current_job() works inside a task that a worker runs")
    return job
