"""The messages between a worker process and a runner process, and how a job in a process can end."""

from typing import TypeAlias

import msgspec

from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.run import ClaimedJob, Note
from tidemill.model.time import Span
from tidemill.task.current import Abort
from tidemill.task.settings.setting import without_password


class Open(msgspec.Struct, frozen=True, tag="open"):
    """The first message: load this app."""

    app: str
    log_format: str
    url: str = ""
    """The worker's URL: jobs that tasks enqueue go there too. Empty: the app's own URL."""
    namespace: str = ""

    def __repr__(self) -> str:
        return f"Open({self.app!r}, url={without_password(self.url)!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("app", self.app), ("url", without_password(self.url))]


class Perform(msgspec.Struct, frozen=True, tag="perform"):
    """Run this job, and answer with its outcome. Under a rate: not before `start_ns` and not after
    `start_by_ns`, by the boot clock (0: at any time)."""

    job: ClaimedJob
    start_ns: int = 0
    start_by_ns: int = 0


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """The running code should stop."""

    reason: Abort


class HoldAnswer(msgspec.Struct, frozen=True, tag="held"):
    """The answer to `Completing`: what the job noted and is not known to be written. It goes into the same
    transaction."""

    notes: list[Note]


ToRunner: TypeAlias = Perform | Stop | HoldAnswer


class RunnerCannotLoad(msgspec.Struct, frozen=True, tag="cannot_load"):
    """It cannot run anything, and why. It ends now."""

    message: str


class Began(msgspec.Struct, frozen=True, tag="began"):
    """The job's code is about to be called: if the process dies from now on, that is its doing."""


class Noted(msgspec.Struct, frozen=True, tag="noted"):
    """The latest progress, and log lines (level, text), of the job that runs."""

    progress: bytes | None
    lines: list[tuple[str, str]]


class Completing(msgspec.Struct, frozen=True, tag="completing"):
    """The job is about to complete itself in a transaction of its own. Sent before it does: should the
    process die then, the engine knows how that ended."""


class Returned(msgspec.Struct, frozen=True, tag="returned"):
    """The function returned; the result as it is stored."""

    result: bytes | None
    completing: bool = False
    """It left its outcome to a transaction."""


class Raised(msgspec.Struct, frozen=True, kw_only=True, tag="raised"):
    """It raised, or its result cannot be stored; `lineage` names the exception's classes, its own first.
    A failure of kind "payload" is final: its arguments cannot be read, or its result cannot be stored."""

    failure: Failure
    lineage: list[str]
    retry_after: Span | None = None
    """It was `RetryAfter`: the wait that it asks for."""
    snooze: Span | None = None
    """It was `Snooze`: the same."""


class AbortedRun(msgspec.Struct, frozen=True, tag="aborted"):
    """It raised `Aborted` because it was told to stop."""

    reason: Abort


class CameLate(msgspec.Struct, frozen=True, tag="late"):
    """It came too late for the permit of its rate, and was not called."""


class RunnerCrashed(msgspec.Struct, frozen=True, tag="crashed"):
    """The process died with the job in it, by itself: proof."""

    message: str


class Killed(msgspec.Struct, frozen=True, tag="killed"):
    """The process died because we killed it."""


FromRunner: TypeAlias = (
    RunnerCannotLoad | Began | Noted | Completing | Returned | Raised | AbortedRun | CameLate
)
ProcessOutcome: TypeAlias = Returned | Raised | AbortedRun | CameLate | RunnerCrashed | Killed
