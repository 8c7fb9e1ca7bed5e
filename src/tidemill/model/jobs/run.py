"""Runs: claiming jobs, what is written about them while they run, and how they end.

Every record about a run carries `(id, fence)`; `job` has the job itself, and why some are hidden from the
garbage collector.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import PAYLOAD_LIMIT, Failure, Fence, NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import Instant, Span

LOG_LINES_KEPT = 1_000
"""The newest log lines kept of one job."""


class ClaimedJob(msgspec.Struct, gc=False):
    """What a worker needs to run a job."""

    id: JobId
    fence: Fence
    seq: int
    task: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    codec: int
    body: bytes
    headers: bytes | None
    key: str | None
    timeout: Span | None
    retry: Retry | None
    created_at: Instant
    ready_at: Instant
    crashes: int
    suspect: bool
    limited: bool
    """Its queue has a limit, a rate or fairness: never held in a buffer."""
    on_dead: str | None
    schedule: str | None
    snoozes: int = 0
    """How often it was released because its code asked for a later time."""
    start_in: Span = 0
    """Under a rate: it starts so long after the claim, by the engine's clock, and not before."""
    start_within: Span | None = None
    """Under a rate: later than this after `start_in` it must not start, but is released ("late"). None: it is
    under no rate. 0: a repeated claim; it is too late."""


class Want(msgspec.Struct, frozen=True):
    """One queue that a claim takes from, and the most it may take from it (None: no bound of its own)."""

    queue: str
    most: int | None = None


class ClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A claim. `(claimant, number)` names it: a repeat of the number returns the same jobs."""

    member: bytes
    claimant: bytes
    number: int
    """1, 2, 3, ...: one in flight at a time."""
    wants: tuple[Want, ...]
    most: int
    suspects: int = 0
    """How many suspects may be among them (embedded workers: none)."""
    ids: tuple[JobId, ...] | None = None
    """Only these jobs, if they are ready (delivery by a broker)."""
    unknown: tuple[str, ...] = ()
    """Tasks that the claimant does not know, as far as it has met them: none of their jobs are taken."""


class Claim(msgspec.Struct):
    """The answer to a claim."""

    jobs: list[ClaimedJob]
    """In the order in which they should start."""
    wait: Span | None = None
    """Fewer than requested: the earliest moment, from now, at which time alone may make more claimable
    (a due job, a rate that opens, the end of a transaction that has a lane's next job locked; 0: at once).
    None: only a signal can."""
    now: Instant = 0
    """The engine's clock at this claim: how long its jobs had been ready is known by it."""


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """What happens in the same step as an outcome, if and only if that is applied."""

    jobs: tuple[NewJob, ...] = ()
    schedule: str | None = None
    """A schedule whose next time is set ..."""
    schedule_in: Span = 0
    """... to this long from now, ..."""
    schedule_version: int | None = None
    """... if it still has this version. None: whatever its version is."""


class Completed(msgspec.Struct, frozen=True, kw_only=True, tag="completed", gc=False):
    """The function returned."""

    result: bytes | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The attempt failed: tried again after `retry_in`, or dead (None)."""

    failure: Failure
    retry_in: Span | None = None


class Stopped(msgspec.Struct, frozen=True, kw_only=True, tag="stopped"):
    """The function stopped because cancel was requested: cancelled."""


class Crashed(msgspec.Struct, frozen=True, kw_only=True, tag="crashed"):
    """It ran in a process of its own, and that process died: the proof of a crash."""

    message: str = ""


Outcome: TypeAlias = Completed | Failed | Stopped | Crashed


class Settlement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One outcome, under the fence of the run that it ends."""

    id: JobId
    fence: Fence
    outcome: Outcome
    ran: Span = 0
    """How long it ran; the engine dates the start back from its own now."""
    then: Then | None = None


ReleaseReason = Literal["unknown task", "no process runner", "drain", "snooze", "late"]
"""Why a worker releases a job: it does not have the task; it has no process to run the job in; it ends; the
job itself asked for a later time; it could not start near enough to the moment of its rate's permit."""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Release a job without using an attempt: to its old position (None) or after a delay."""

    id: JobId
    fence: Fence
    delay: Span | None = None
    reason: ReleaseReason | None = None
    """Shown with the job until its next claim. "snooze" is counted with the job."""


LostRunVerdict = Literal["suspect", "crash"]


class LostRun(msgspec.Struct, frozen=True, kw_only=True):
    """A job that had really started in a dead claimant: one of several (suspect), or the proven
    cause (crash)."""

    id: JobId
    fence: Fence
    verdict: LostRunVerdict
    message: str = ""


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The run began now. Written for suspects before they run, for others when convenient."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """The latest progress, replacing the former."""

    value: bytes


class LogLine(msgspec.Struct, frozen=True, kw_only=True, tag="log"):
    """One line. `number` grows within a run, so that a repeated write adds nothing."""

    number: int
    level: str
    message: str


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoint"):
    """The value of a durable step; the first write of a name stays, over attempts too."""

    name: str
    value: bytes


Entry: TypeAlias = Started | Progress | LogLine | Checkpoint


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something written about a run while it runs."""

    id: JobId
    fence: Fence
    entry: Entry


def check_own(settlement: Settlement, notes: Sequence[Note]) -> None:
    """Refuse notes that are not about the run that is settled."""
    if any((note.id, note.fence) != (settlement.id, settlement.fence) for note in notes):
        raise BadInput("the notes that go with an outcome are those of the same run")


class StoredLine(msgspec.Struct, frozen=True):
    """A log line as it is kept."""

    fence: Fence
    number: int
    at: Instant
    level: str
    message: str


class Answer(StrEnum):
    """What a fenced write or a command about one job came to."""

    APPLIED = "applied"
    ALREADY = "already"
    """A repeat of a call that was applied before; changes nothing."""
    STALE = "stale"
    """Another run has the job, or none: changes nothing."""


class Fate(StrEnum):
    """What became of a run whose code completed it in a transaction of its own."""

    SETTLED = "settled"
    """That transaction committed: this very run was settled."""
    OPEN = "open"
    """Not decided: some transaction holds the job. Ask again."""
    FREE = "free"
    """The run still holds its job and no transaction does: it was rolled back."""
    GONE = "gone"
    """Another run has the job, or none, or there is no such job any more."""


def check_result(result: bytes | None) -> bytes | None:
    """The same bytes, or `PayloadTooLarge`."""
    if result is not None and len(result) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"the result takes {len(result):,} bytes; the limit is {PAYLOAD_LIMIT:,}: "
            "store the data elsewhere and return a reference"
        )
    return result
