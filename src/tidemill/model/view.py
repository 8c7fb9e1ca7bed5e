"""What is shown about jobs and queues: filters, pages, counts, series, audit."""

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId
from tidemill.model.jobs.fingerprint import read_group
from tidemill.model.jobs.job import FINAL, LIVE, FailureKind, JobRecord, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.unique import UniqueOptions
from tidemill.model.names import check_queue, check_task
from tidemill.model.queues.lane import check_priority
from tidemill.model.queues.layers import Declaration, Override
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import DAY, MINUTE, Instant, Span

PAGE_LIMIT = 1_000
SCAN_LIMIT = 10_000
"""The most jobs that one call of `inspect.list` scans."""
HEADS_LIMIT = 1_000
"""The most lanes of a queue whose heads are looked at for the oldest ready job."""
WINDOW: Span = DAY


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs. Every part that is given must match."""

    state: JobState | None = None
    queue: str | None = None
    task: str | None = None
    key: str | None = None
    tag: str | None = None
    """In the job's headers, under "tags"."""
    text: str | None = None
    """Occurs in the body or in the last error's message, case-sensitively."""
    group: str | None = None
    """The dead letters of this group (`DeadGroup.name`): no others are found."""
    since: Instant | None = None
    """In its present state since this moment or later (`moment_of`) ..."""
    until: Instant | None = None
    """... and before this one."""
    member: str | None = None
    """The name of the member that runs or last ran it."""
    schedule: str | None = None
    priority: int | None = None


class Page(msgspec.Struct, kw_only=True):
    """Some jobs, and where to go on. A short page with a cursor is not the end."""

    jobs: list[JobRecord]
    cursor: str | None
    """None: there is no more."""
    scanned: int


class DeadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters of one queue that failed alike: same task, same fingerprint of the last failure."""

    queue: str
    task: str
    fingerprint: str
    count: int
    first_at: Instant
    """The oldest death among those that are kept."""
    last_at: Instant
    sample: JobId
    """The newest of them. Below, what it died of."""
    kind: FailureKind
    error: str
    message: str
    """As the sample has it."""
    age: Span = 0
    """How old the count is."""

    @property
    def name(self) -> str:
        """What `JobFilter.group` takes: the same in every queue."""
        return f"{self.task}/{self.fingerprint}"


class GroupPage(msgspec.Struct, kw_only=True):
    """Some groups, and where to go on. A short page with a cursor is not the end."""

    groups: list[DeadGroup]
    cursor: str | None


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """What ended in a window of time: counted when it happened, not falsified by retention."""

    completed: int = 0
    failed: int = 0
    """Failed attempts, retried or not."""
    died: int = 0
    """Became dead letters then; `QueueCounts.dead` are those that are kept now."""
    cancelled: int = 0

    def __add__(self, other: "Finished") -> "Finished":
        return Finished(
            completed=self.completed + other.completed,
            failed=self.failed + other.failed,
            died=self.died + other.died,
            cancelled=self.cancelled + other.cancelled,
        )


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One queue's numbers, also when they are all zero."""

    queue: str
    blocked: int = 0
    scheduled: int = 0
    ready: int = 0
    running: int = 0
    completed: int = 0
    """Retained now, as are the next two."""
    dead: int = 0
    cancelled: int = 0
    window: Finished = Finished()
    age: Span = 0
    """How old the counts are."""
    oldest_ready_at: Instant | None = None
    """Since when the longest waiting of the ready jobs has been ready, also if it waits behind a full gate:
    of those at the heads of the first `HEADS_LIMIT` lanes. None: no job is ready."""

    def in_state(self, state: JobState) -> int:
        """The count of one state."""
        count: int = getattr(self, state.value)
        return count


class SeriesPoint(msgspec.Struct, frozen=True):
    """What ended in one step of a series."""

    at: Instant
    finished: Finished


class QueueInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as the engine keeps it."""

    name: str
    options: QueueOptions
    """In force: overrides over what is declared."""
    created_at: Instant
    paused_at: Instant | None = None
    paused_by: str = ""
    paused_why: str = ""
    declared: dict[str, Declaration] = {}
    """By app."""
    overrides: dict[str, Override] = {}
    """By field."""
    version: int = 0
    """Grows with every change of what is declared or overridden."""
    problems: tuple[str, ...] = ()
    """What this release had to leave out of the options."""


class TaskEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One task in the catalogue that workers publish: the defaults for enqueue by name."""

    name: str
    queue: str
    priority: int = 5
    timeout: Span | None = None
    retry: Retry | None = None
    key: str | None = None
    """The parameter that gives the key."""
    schema: bytes | None = None
    """JSON schema of the parameters."""
    on_dead: str | None = None
    unique: UniqueOptions | None = None
    paused_at: Instant | None = None
    """Since when an operator holds its jobs back. A pause is read with the entry, not published with it."""
    paused_by: str = ""
    paused_why: str = ""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One action of an operator."""

    number: int
    at: Instant
    by: str
    action: str
    target: str
    detail: str = ""


CONTROLLER_LEASE = "controller"
"""The holder of the lease of this name is the controller; it is written as its member's id in hex."""
CLUSTER_LEASE = "cluster"
"""Kept by the controller: since when the cluster lives, and when it was last seen alive."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A named lease that is held."""

    name: str
    holder: str
    fence: int
    expires_at: Instant


class Statement(msgspec.Struct, frozen=True):
    """SQL with its parameters, for a connection of the caller's own."""

    sql: str
    parameters: tuple[object, ...] | dict[str, object]


def check_filter(only: JobFilter) -> JobFilter:
    """The same filter, or `BadInput`."""
    if only.queue is not None:
        check_queue(only.queue)
    if only.task is not None:
        check_task(only.task)
    if only.priority is not None:
        check_priority(only.priority)
    if only.group is not None:
        read_group(only.group)
        if only.state not in (None, JobState.DEAD):
            raise BadInput(f"only dead jobs have a group, not those that are {only.state}")
    if only.since is not None and only.until is not None and only.since >= only.until:
        raise BadInput("a range of time begins before it ends: `since` is not before `until`")
    return only


def check_page(limit: int) -> int:
    """The same limit, or `BadInput`."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"a page holds between 1 and {PAGE_LIMIT:,} jobs, not {limit}")
    return limit


def check_series_step(step: Span) -> Span:
    """The same step, or `BadInput`: finished jobs are counted by the minute."""
    if step < MINUTE or step % MINUTE:
        raise BadInput("a series has steps of whole minutes")
    return step


def states_of(only: JobFilter) -> tuple[JobState, ...]:
    """The states that a filter admits, live ones first."""
    if only.group is not None:
        return (JobState.DEAD,)
    return (only.state,) if only.state else (*LIVE, *FINAL)


def is_scanned(only: JobFilter) -> bool:
    """Whether it has a part that some walk tries on each job: then a page may take any number of them."""
    parts = only.task, only.key, only.tag, only.text, only.member, only.schedule, only.priority
    return any(part is not None for part in (*parts, only.since, only.until))


def moment_of(job: JobRecord) -> Instant:
    """Since when a job is in its state; of a scheduled one, when it is due."""
    moments = {
        JobState.BLOCKED: job.created_at,
        JobState.SCHEDULED: job.due_at,
        JobState.READY: job.ready_at,
        JobState.RUNNING: job.claimed_at,
    }
    return moments.get(job.state, job.ended_at) or job.created_at


def matches(only: JobFilter, job: JobRecord, body: bytes) -> bool:
    """Whether a job passes those parts of a filter that no index answers."""
    for name in ("task", "key", "member", "schedule", "priority"):
        wanted = getattr(only, name)
        if wanted is not None and getattr(job, name) != wanted:
            return False
    if only.since is not None and moment_of(job) < only.since:
        return False
    if only.until is not None and moment_of(job) >= only.until:
        return False
    if only.tag is not None and only.tag not in _tags(job.headers):
        return False
    if only.text is not None:
        return only.text.encode() in body or (job.error is not None and only.text in job.error.message)
    return True


def _tags(headers: bytes | None) -> list[object]:
    if headers is None:
        return []
    try:
        decoded = msgspec.json.decode(headers)
    except msgspec.DecodeError:  # a producer of another kind wrote something else there
        return []
    tags = decoded.get("tags", []) if isinstance(decoded, dict) else []
    return tags if isinstance(tags, list) else []
