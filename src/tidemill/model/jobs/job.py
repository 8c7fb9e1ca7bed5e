"""The job: its states, and the records of it that cross the engine seam. `run` has those of its runs.

Read `JobState` first: each state says who moves a job in, who moves it out, and who deletes it.

Records that are made for every job (`gc=False`) are hidden from the garbage collector: they hold nothing that
could refer back to them, and a thousand new ones at a time would set it off again and again.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

import msgspec

from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.ids import ID_SIZE, JobId, check_id
from tidemill.model.jobs.retry import ATTEMPTS_LIMIT, Retry
from tidemill.model.jobs.unique import UniqueKey, check_unique_key
from tidemill.model.names import check_key, check_queue, check_task
from tidemill.model.queues.lane import DEFAULT_PRIORITY, check_priority
from tidemill.model.time import FAR_FUTURE, LONGEST, Instant, Span

PAYLOAD_LIMIT = 1 << 20
"""The most bytes of a body, and of a result."""
TRACEBACK_LIMIT = 16 << 10
MESSAGE_LIMIT = 4 << 10
PARENTS_LIMIT = 1_000
FIRST_KEPT, LAST_KEPT = 5, 20
"""Of a job's failures the first 5 and the last 20 are kept: how it began, and how it is now."""

Fence: TypeAlias = int
"""Grows with every claim, unique per run, below 2**53. Every write about a run carries it."""


class JobState(StrEnum):
    """Where a job is in its life. `lifecycle` says which steps exist."""

    BLOCKED = "blocked"
    """Waits for other jobs, or for a named event. Put here by enqueue with `after=`, or by a running
    job that waits. Leaves when the last parent completes (ready or scheduled), when a parent ends
    otherwise (by policy), by cancel, or by expiry. Never claimed, never pruned."""
    SCHEDULED = "scheduled"
    """Waits for its due time. Put here by enqueue with a delay, a retry, a release with a delay, or a call
    that replaced it with a later time.
    The first claim or promote after the due time moves it to ready, exactly once.
    Never pruned."""
    READY = "ready"
    """Stands in its lane, in the order of `seq`. Put here by enqueue, when due, unblocked, replayed,
    or released. A claim takes it out; a full gate leaves it here. Never pruned."""
    RUNNING = "running"
    """Held by one claimant under one fence, from claim to settle. The claimant settles or releases
    it; if the claimant or its member dies, retire or reclaim gives it back. Never pruned."""
    COMPLETED = "completed"
    """The function returned. Final. Kept with its result until retention prunes it; may be replayed."""
    DEAD = "dead"
    """A dead letter: the last attempt failed, it crashed its worker three times, or it expired.
    Final. Kept with payload and errors, by default for ever; replayed or dropped by an operator."""
    CANCELLED = "cancelled"
    """Stopped on request, or because a parent died. Final. Pruned by retention; may be replayed."""


STATES = tuple(JobState)
LIVE = (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY, JobState.RUNNING)
FINAL = (JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED)

ParentDied = Literal["cancel", "run", "wait"]
"""What becomes of a blocked job whose parent ended dead or cancelled: it is cancelled (and its own
children by their policies), it treats the parent as done, or it waits for the parent's replay."""

FailureKind = Literal["error", "timeout", "crash", "lost", "expired", "parent", "payload"]
"""error: the function raised. timeout: it ran past its timeout. crash: it took its process with it.
lost: its member vanished. expired: not started in time. parent: a parent died. payload: its
arguments could not be decoded or do not fit the function, or its result cannot be stored."""


class NewJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job to be enqueued, all options resolved. Check it with `check_new_job` at the edge."""

    id: JobId
    task: str
    queue: str
    priority: int = DEFAULT_PRIORITY
    body: bytes = b"[[],{}]"
    codec: int = 1
    headers: bytes | None = None
    """JSON object: trace context, tags, origin."""
    key: str | None = None
    """Always sent; the engine decides whether the queue is keyed. "" is the same as None."""
    delay: Span = 0
    at: Instant | None = None
    """The one instant that comes from a user; exclusive with `delay`."""
    expires: Span | None = None
    """Not started this long after enqueue: dead, "expired"."""
    timeout: Span | None = None
    retry: Retry | None = None
    """None: the worker takes task > queue > app."""
    attempts: int = 5
    """What the job shows as its maximum."""
    after: tuple[JobId, ...] = ()
    parent_died: ParentDied = "cancel"
    on_dead: str | None = None
    """The task that handles its death: see `model.death`."""
    schedule: str | None = None
    """The schedule that fired it."""
    unique: UniqueKey | None = None
    """At most one job of this key: see `unique`."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The answer to one new job."""

    id: JobId
    """The job that is there now: its own id, unless another job was met in its place."""
    created: bool
    """Whether this call stored it."""


class KnownCall(msgspec.Struct, frozen=True, gc=False):
    """The call of a stored job: what counts when its id comes again."""

    id: JobId
    task: str
    codec: int
    body: bytes | None
    """None: no longer kept."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt that did not complete."""

    kind: FailureKind = "error"
    error: str = ""
    """The exception's qualified class name."""
    message: str = ""
    traceback: str = ""
    fingerprint: str = ""
    """Filled in by the engine, as is everything below. `model.jobs.fingerprint` says what it is made of."""
    attempt: int = 0
    number: int = 0
    """1 for the job's first failure of any kind, counted on over replays."""
    member: str = ""
    claimed_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    retry_in: Span | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a job (row C1)."""

    id: JobId
    task: str
    queue: str
    priority: int
    state: JobState
    key: str | None = None
    group: str = ""
    """The lane's group, as of the last time it became ready."""
    seq: int = 0
    attempts: int = 0
    """Attempts used up. A running job is at attempt `attempts + 1`: people are shown `attempts_begun`."""
    max_attempts: int = 5
    crashes: int = 0
    lost_runs: int = 0
    """How often its whole member vanished with it."""
    snoozes: int = 0
    """How often it was released because its code asked for a later time."""
    suspect: bool = False
    """Runs in a process of its own: it may have crashed one."""
    cancel_requested: bool = False
    replays: int = 0
    created_at: Instant = 0
    due_at: Instant | None = None
    ready_at: Instant | None = None
    claimed_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    expires_at: Instant | None = None
    """Cleared when it ends."""
    member: str = ""
    """The name of the member that ran or runs it."""
    fence: Fence | None = None
    """The last claim's fence; only meaningful while running."""
    settled_fence: Fence | None = None
    timeout: Span | None = None
    retry: Retry | None = None
    codec: int = 1
    body: bytes | None = None
    """None once dropped (`keep_body=False`)."""
    headers: bytes | None = None
    result: bytes | None = None
    error: Failure | None = None
    """The last failure."""
    failures: tuple[Failure, ...] = ()
    """The first 5 and the last 20; only filled by `inspect.get`."""
    failure_count: int = 0
    progress: bytes | None = None
    waits_for: int = 0
    """Parents that have not ended yet."""
    on_dead: str | None = None
    schedule: str | None = None
    unique: str | None = None
    """Its unique key, whether it holds it now or not."""
    reason: str | None = None
    """Why its last run was released (`ReleaseReason`), or "unknown task" if a claim has set it aside for
    that; None once it is claimed again or has ended."""

    @property
    def attempts_begun(self) -> int:
        """How people count: 1 while the first attempt runs, and when it has ended."""
        return self.attempts + (self.state is JobState.RUNNING)

    @property
    def dead_group(self) -> str | None:
        """The name of its dead-letter group, if it is dead: `JobFilter.group` takes it."""
        if self.state is not JobState.DEAD or self.error is None:
            return None
        return f"{self.task}/{self.error.fingerprint}"


class CancelAnswer(StrEnum):
    CANCELLED = "cancelled"
    """It had not started, or was cancelled before: it never starts."""
    ASKED = "asked"
    """It runs: its stop was requested."""
    FINISHED = "finished"
    """Completed or dead already; nothing changed."""
    UNKNOWN = "unknown"


class ReplayAnswer(StrEnum):
    REPLAYED = "replayed"
    """It is ready again, by this call or by an earlier one with the same token."""
    LIVE = "live"
    """It has not ended; nothing changed."""
    NO_BODY = "no body"
    """Its payload was dropped; it cannot be replayed."""
    NOT_UNIQUE = "not unique"
    """Another job holds its unique key; nothing changed."""
    UNKNOWN = "unknown"


class RunNowAnswer(StrEnum):
    READY = "ready"
    """It waits for nothing but its turn, by this call or before it."""
    BLOCKED = "blocked"
    """It waits for other jobs; nothing changed."""
    RUNNING = "running"
    FINISHED = "finished"
    UNKNOWN = "unknown"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Other arguments for a job that is replayed."""

    body: bytes
    codec: int = 1
    key: str | None = None
    """In place of the former one: it may come from an argument."""


class DropAnswer(StrEnum):
    DROPPED = "dropped"
    LIVE = "live"
    """It has not ended: cancel it first."""
    UNKNOWN = "unknown"
    """Never known, or dropped before: a repeat finds this."""


def check_edit(edit: Edit) -> Edit:
    """The same, or `BadInput` that says what to change."""
    check_key(edit.key)
    if not isinstance(edit.body, bytes):
        raise BadInput("a body is bytes: encode it before the replay")
    if len(edit.body) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"the arguments take {len(edit.body):,} bytes; the limit is {PAYLOAD_LIMIT:,}: store the data "
            "elsewhere and pass a reference"
        )
    return edit


def check_new_job(job: NewJob) -> NewJob:
    """The same job, or `BadInput` that says what to change."""
    check_id(job.id)
    check_task(job.task)
    check_queue(job.queue)
    check_priority(job.priority)
    check_key(job.key)
    if not isinstance(job.body, bytes) or not (job.headers is None or isinstance(job.headers, bytes)):
        raise BadInput("body and headers are bytes: encode them before enqueue")
    if len(job.body) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"the arguments of {job.task} take {len(job.body):,} bytes; the limit is {PAYLOAD_LIMIT:,}: "
            "store the data elsewhere and pass a reference"
        )
    if job.at is not None and job.delay:
        raise BadInput("give at= or delay=, not both")
    if not 0 <= job.delay <= LONGEST or (job.at is not None and not 0 <= job.at <= FAR_FUTURE):
        raise BadInput("a due time lies between now and a hundred years ahead")
    if job.timeout is not None and not 0 < job.timeout <= LONGEST:
        raise BadInput("a timeout must be longer than 0 s; leave it out for none")
    if job.expires is not None and not 0 < job.expires <= LONGEST:
        raise BadInput("expires must be longer than 0 s; leave it out for never")
    if not 1 <= job.attempts <= ATTEMPTS_LIMIT:
        raise BadInput(f"attempts must lie between 1 and {ATTEMPTS_LIMIT}, not {job.attempts}")
    if job.on_dead is not None:
        check_task(job.on_dead)
    if job.schedule is not None:
        check_task(job.schedule)
    if job.after:
        check_parents(job)
    if job.unique is not None:
        check_unique_key(job.unique, parents=bool(job.after))
    return job


def check_new_jobs(jobs: Iterable[NewJob]) -> None:
    """The same for each of them. Those of one call mostly differ in nothing but id and body: what is the very
    same as in the one before was checked with that (0.6 us a job instead of 1.5)."""
    last: NewJob | None = None
    for job in jobs:
        if (
            last is None
            or job.task is not last.task
            or job.queue is not last.queue
            or job.priority is not last.priority
            or job.delay is not last.delay
            or job.at is not last.at
            or job.timeout is not last.timeout
            or job.attempts is not last.attempts
            or job.expires is not last.expires
            or job.headers is not last.headers
            or job.key is not last.key
            or job.on_dead is not last.on_dead
            or job.schedule is not last.schedule
            or job.unique is not last.unique
            or job.after
            or type(job.id) is not bytes
            or len(job.id) != ID_SIZE
            or type(job.body) is not bytes
            or len(job.body) > PAYLOAD_LIMIT
        ):
            check_new_job(job)
            last = job


def check_parents(job: NewJob) -> None:
    """Refuse parents that can never be waited for."""
    if job.parent_died not in get_args(ParentDied):
        raise BadInput(f'parent_died is "cancel", "run" or "wait", not {job.parent_died!r}')
    if len(job.after) > PARENTS_LIMIT:
        raise BadInput(f"a job waits for at most {PARENTS_LIMIT:,} others, not {len(job.after):,}")
    if job.id in job.after:
        raise BadInput("a job cannot wait for itself")
    for parent in job.after:
        check_id(parent)


def clip_failure(failure: Failure) -> Failure:
    """The failure with its texts cut to their bounds: a traceback keeps its end, a message its start.

    Lone surrogates (a file name that is not UTF-8 in an `OSError`) are spelled out: no engine stores them."""
    traceback = failure.traceback.encode(errors="backslashreplace")
    if len(traceback) > TRACEBACK_LIMIT:
        traceback = b"...\n" + traceback[-(TRACEBACK_LIMIT - 4) :]
    message = failure.message.encode(errors="backslashreplace")[:MESSAGE_LIMIT]
    return msgspec.structs.replace(
        failure, traceback=traceback.decode(errors="ignore"), message=message.decode(errors="ignore")
    )
