"""The JSON that `--json` prints. Names and types here are a promise: fields may be added, none taken away.

Times are RFC 3339 in UTC, lengths of time are seconds in fields that end in `_s`, ids are dashed UUIDs. The
descriptions are what docs/cli.md shows.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.cli.text import rfc3339
from penstock.model.ids import show_id
from penstock.model.job import Failure, Job
from penstock.model.member import Member
from penstock.model.time import SECOND, Instant, Span
from penstock.model.view import Finished, QueueCounts, QueueInfo

Time = str | None
Seconds = float | None


def seconds_of(span: Span | None) -> Seconds:
    return None if span is None else span / SECOND


class Payload(msgspec.Struct, frozen=True):
    """A job's arguments."""

    args: Annotated[list[Any], Meta(description="positional arguments")]
    kwargs: Annotated[dict[str, Any], Meta(description="keyword arguments")]


class FailureShape(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that did not complete."""

    kind: Annotated[str, Meta(description="error, timeout, crash, lost, expired, parent or payload")]
    error: Annotated[str, Meta(description="the exception's qualified class name")]
    message: Annotated[str, Meta(description="its text")]
    traceback: Annotated[str, Meta(description="its traceback")]
    attempt: Annotated[int, Meta(description="which attempt it was")]
    number: Annotated[int, Meta(description="1 for the job's first failure, counted on over replays")]
    worker: Annotated[str, Meta(description="the member that ran it")]
    claimed_at: Annotated[Time, Meta(description="when it was taken")]
    started_at: Annotated[Time, Meta(description="when it began to run")]
    ended_at: Annotated[Time, Meta(description="when it failed")]
    retry_in_s: Annotated[Seconds, Meta(description="the wait chosen before the next attempt; null: none")]


class JobShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job. Those of a list have no payload, result and failures; `show` has everything."""

    id: Annotated[str, Meta(description="its id")]
    task: Annotated[str, Meta(description="the name of its task")]
    queue: Annotated[str, Meta(description="its queue")]
    priority: Annotated[int, Meta(description="0 (first) to 10")]
    state: Annotated[
        str, Meta(description="blocked, scheduled, ready, running, completed, dead or cancelled")
    ]
    key: Annotated[str | None, Meta(description="its key")]
    attempts: Annotated[int, Meta(description="attempts used up; a running job is at the next one")]
    max_attempts: Annotated[int, Meta(description="the most attempts")]
    crashes: Annotated[int, Meta(description="proven crashes of its worker process")]
    losses: Annotated[int, Meta(description="how often its whole member vanished with it")]
    suspect: Annotated[bool, Meta(description="runs in a process of its own: it may have crashed one")]
    cancel_asked: Annotated[bool, Meta(description="it was asked to stop")]
    replays: Annotated[int, Meta(description="how often it was replayed")]
    created_at: Annotated[Time, Meta(description="when it was enqueued")]
    due_at: Annotated[Time, Meta(description="when it becomes ready, if it waits for that")]
    ready_at: Annotated[Time, Meta(description="when it last became ready")]
    claimed_at: Annotated[Time, Meta(description="when a worker last took it")]
    started_at: Annotated[Time, Meta(description="when it last began to run")]
    ended_at: Annotated[Time, Meta(description="when it came into its final state")]
    expires_at: Annotated[Time, Meta(description="when it is dead if it has not started")]
    timeout_s: Annotated[Seconds, Meta(description="how long an attempt may run, if the job itself says so")]
    worker: Annotated[str | None, Meta(description="the member that runs or last ran it")]
    waits_for: Annotated[int, Meta(description="other jobs that it still waits for")]
    on_dead: Annotated[str | None, Meta(description="the task that handles its final failure")]
    schedule: Annotated[str | None, Meta(description="the schedule that made it")]
    progress: Annotated[Any, Meta(description="what it last reported")]
    failure_count: Annotated[int, Meta(description="failures of any kind, over replays too")]
    error: Annotated[FailureShape | None, Meta(description="the last failure")]
    headers: Annotated[
        dict[str, Any] | UnsetType | None, Meta(description="tags, trace context, origin (`show`)")
    ] = UNSET
    payload: Annotated[
        Payload | UnsetType | None, Meta(description="its arguments; null: dropped or not readable (`show`)")
    ] = UNSET
    result: Annotated[Any, Meta(description="what the function returned (`show`)")] = UNSET
    failures: Annotated[
        list[FailureShape] | UnsetType, Meta(description="the first 5 and the last 20 (`show`)")
    ] = UNSET


class AnswerShape(msgspec.Struct, frozen=True):
    """What became of one job that was named by its id."""

    id: Annotated[str, Meta(description="the job")]
    answer: Annotated[
        str, Meta(description="replayed, cancelled, asked, dropped, finished, live, no body, unknown")
    ]


class BulkShape(msgspec.Struct, frozen=True):
    """What became of the jobs that a filter matched."""

    matched: Annotated[int, Meta(description="jobs that the filter found")]
    answers: Annotated[dict[str, int], Meta(description="how many of them got each answer")]


class EnqueuedShape(msgspec.Struct, frozen=True):
    """A job that was enqueued."""

    id: Annotated[str, Meta(description="its id")]
    task: Annotated[str, Meta(description="the name of its task")]
    result: Annotated[Any, Meta(description="what the function returned (with --wait)")] = UNSET


class FinishedShape(msgspec.Struct, frozen=True):
    """What ended in the window."""

    completed: int
    failed: Annotated[int, Meta(description="failed attempts, retried or not")]
    dead: int
    cancelled: int


class StatsShape(msgspec.Struct, frozen=True, kw_only=True):
    """One queue now, and what ended there in the window."""

    queue: str
    ready: int
    scheduled: int
    running: int
    blocked: int
    completed: Annotated[int, Meta(description="kept now, as are the next two")]
    dead: int
    cancelled: int
    window_s: Annotated[float, Meta(description="the window's length")]
    window: Annotated[FinishedShape, Meta(description="what ended in it, not falsified by retention")]
    age_s: Annotated[float, Meta(description="how old the counts are")]


class QueueShape(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as it is configured."""

    name: str
    options: Annotated[
        dict[str, Any],
        Meta(description="the options that differ from the defaults, as `Penstock.queue` takes them"),
    ]
    created_at: Time
    paused_at: Annotated[Time, Meta(description="null: not paused")]
    paused_by: str
    paused_why: str


class MemberShape(msgspec.Struct, frozen=True, kw_only=True):
    """One member."""

    id: Annotated[str, Meta(description="its id, new for every start")]
    name: Annotated[str, Meta(description="host:pid")]
    health: Annotated[str, Meta(description="healthy, late or gone")]
    host: str
    pid: int
    version: str
    roles: list[str]
    queues: list[str]
    slots: int
    running: Annotated[int, Meta(description="jobs it has now")]
    since: Time
    beat_at: Annotated[Time, Meta(description="its last beat")]
    beat_s: Annotated[float, Meta(description="how often it beats")]
    lease_s: Annotated[float, Meta(description="how long it may be silent")]


class SettingShape(msgspec.Struct, frozen=True):
    """One setting."""

    name: str
    value: Annotated[str, Meta(description="as it would be written; secrets are hidden")]
    source: Annotated[str, Meta(description="where the value came from")]


def failure_shape(failure: Failure) -> FailureShape:
    return FailureShape(
        kind=failure.kind,
        error=failure.error,
        message=failure.message,
        traceback=failure.traceback,
        attempt=failure.attempt,
        number=failure.number,
        worker=failure.member,
        claimed_at=rfc3339(failure.claimed_at),
        started_at=rfc3339(failure.started_at),
        ended_at=rfc3339(failure.ended_at),
        retry_in_s=seconds_of(failure.retry_in),
    )


_SAME = ("task", "queue", "priority", "key", "attempts", "max_attempts", "crashes", "losses", "suspect")
_SAME_TOO = ("cancel_asked", "replays", "waits_for", "on_dead", "schedule", "failure_count")
_TIMES = ("created_at", "due_at", "ready_at", "claimed_at", "started_at", "ended_at", "expires_at")


def job_shape(job: Job, *, whole: bool = False) -> JobShape:
    """A job for machines; `whole` with what only `inspect.get` knows."""
    parts: dict[str, Any] = {name: getattr(job, name) for name in (*_SAME, *_SAME_TOO)}
    parts |= {name: rfc3339(getattr(job, name)) for name in _TIMES}
    if whole:
        parts |= {
            "headers": json_of(job.headers),
            "payload": payload_of(job),
            "result": json_of(job.result),
            "failures": [failure_shape(failure) for failure in job.failures],
        }
    return JobShape(
        id=show_id(job.id),
        state=job.state.value,
        timeout_s=seconds_of(job.timeout),
        worker=job.member or None,
        progress=json_of(job.progress),
        error=failure_shape(job.error) if job.error else None,
        **parts,
    )


def json_of(text: bytes | None) -> Any:
    """Stored JSON; what cannot be read is shown as text rather than hidden."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text.decode(errors="backslashreplace")


def payload_of(job: Job) -> Payload | None:
    """The arguments, if they are there and readable (codec 1 is plain JSON)."""
    if job.body is None or job.codec != 1:
        return None
    try:
        return Payload(*msgspec.json.decode(job.body, type=tuple[list[Any], dict[str, Any]]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def stats_shape(counts: QueueCounts, window: Span) -> StatsShape:
    ended: Finished = counts.window
    return StatsShape(
        queue=counts.queue,
        ready=counts.ready,
        scheduled=counts.scheduled,
        running=counts.running,
        blocked=counts.blocked,
        completed=counts.completed,
        dead=counts.dead,
        cancelled=counts.cancelled,
        window_s=window / SECOND,
        window=FinishedShape(ended.completed, ended.failed, ended.dead, ended.cancelled),
        age_s=counts.age / SECOND,
    )


def queue_shape(queue: QueueInfo) -> QueueShape:
    return QueueShape(
        name=queue.name,
        options=msgspec.to_builtins(queue.options),
        created_at=rfc3339(queue.created_at),
        paused_at=rfc3339(queue.paused_at),
        paused_by=queue.paused_by,
        paused_why=queue.paused_why,
    )


def member_shape(member: Member) -> MemberShape:
    info = member.info
    beat_at: Instant = member.beat_at
    return MemberShape(
        id=show_id(info.id),
        name=info.name,
        health=member.health.value,
        host=info.host,
        pid=info.pid,
        version=info.version,
        roles=list(info.roles),
        queues=list(info.queues),
        slots=info.slots,
        running=member.running,
        since=rfc3339(member.since),
        beat_at=rfc3339(beat_at),
        beat_s=info.beat / SECOND,
        lease_s=info.lease / SECOND,
    )
