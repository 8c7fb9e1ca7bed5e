"""What is known of a job, as people read it: moments as `datetime`s, lengths as `timedelta`s, values decoded.

Engines and workers pass `model.job.Job` around, which has bytes and microseconds.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from tidemill.model.errors import BadPayload
from tidemill.model.ids import show_id
from tidemill.model.jobs import job as model
from tidemill.model.jobs.job import FailureKind, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import Instant, Span, length_of, moment_of
from tidemill.task.definition import Definition

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureInfo:
    """One attempt that did not complete."""

    kind: FailureKind
    """"error": the function raised. "timeout", "crash", "lost" (its worker vanished), "expired", "parent"
    (one that it waited for died), "payload" (its arguments cannot be read, or its result cannot be
    stored)."""
    error: str
    """The qualified name of the exception's class."""
    message: str
    traceback: str
    fingerprint: str
    """Equal for failures that are alike; dead jobs of one task and fingerprint are a group."""
    attempt: int
    number: int
    """1 for the job's first failure of any kind, counted on over replays."""
    member: str
    """The worker that ran it."""
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    retry_in: timedelta | None
    """The wait before the next attempt; None: there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo(Generic[R_co]):
    """A job as it was when it was read. All moments are aware, in UTC; None: not yet, or not at all."""

    id: str
    task: str
    queue: str
    priority: int
    key: str | None
    tags: tuple[str, ...]
    state: JobState
    attempts: int
    """How often it was tried, the attempt that runs included: 1 while the first runs, as in the logs."""
    max_attempts: int
    crashes: int
    replays: int
    created_at: datetime
    due_at: datetime | None
    """When it becomes ready, if it waits for that."""
    ready_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expires_at: datetime | None
    member: str
    """The worker that ran or runs it."""
    timeout: timedelta | None
    retry: Retry | None
    """Said by the call itself; None: as the task, its queue or the app says."""
    args: tuple[Any, ...] | None
    """By the task's annotations, if its code is here, else as JSON has them. None: no longer kept."""
    kwargs: dict[str, Any] | None
    result: R_co | None
    """Of a completed job; None also if its queue keeps no results."""
    error: FailureInfo | None
    """The last failure of a job that has not completed."""
    failures: tuple[FailureInfo, ...]
    """The first 5 and the last 20, also of a job that completed in the end."""
    progress: dict[str, Any] | None
    """What `current_job().progress` said last: done, total, message."""
    waits_for: int
    """Jobs that must end before it."""
    cancel_asked: bool
    schedule: str | None
    """The schedule that made it."""
    unique: str | None
    """Its unique key."""
    on_dead: str | None
    """The task that handles its death."""
    snoozes: int
    """How often it has raised `Snooze`."""
    reason: str | None
    """Why a worker released it, or passed it over: "unknown task", "no process runner", "drain", "snooze",
    "late". None once it is taken again or has ended."""


def info_of(record: model.JobRecord, definition: Definition | None, result: R_co | None) -> JobInfo[R_co]:
    """A record in the form that people read. `result` is decoded already."""
    args, kwargs = _arguments(record, definition)
    headers = {} if record.headers is None else msgspec.json.decode(record.headers)
    return JobInfo(
        id=show_id(record.id),
        task=record.task,
        queue=record.queue,
        priority=record.priority,
        key=record.key,
        tags=tuple(headers.get("tags", ())),
        state=record.state,
        attempts=record.attempts_begun,
        max_attempts=record.max_attempts,
        crashes=record.crashes,
        replays=record.replays,
        created_at=moment_of(record.created_at),
        due_at=_moment(record.due_at),
        ready_at=_moment(record.ready_at),
        claimed_at=_moment(record.claimed_at),
        started_at=_moment(record.started_at),
        ended_at=_moment(record.ended_at),
        expires_at=_moment(record.expires_at),
        member=record.member,
        timeout=_length(record.timeout),
        retry=record.retry,
        args=args,
        kwargs=kwargs,
        result=result,
        error=None if record.error is None or record.state is JobState.COMPLETED else _failure(record.error),
        failures=tuple(map(_failure, record.failures)),
        progress=None if record.progress is None else msgspec.json.decode(record.progress),
        waits_for=record.waits_for,
        cancel_asked=record.cancel_requested,
        schedule=record.schedule,
        unique=record.unique,
        on_dead=record.on_dead,
        snoozes=record.snoozes,
        reason=record.reason,
    )


def _arguments(
    record: model.JobRecord, definition: Definition | None
) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    if record.body is None:
        return None, None
    try:
        if definition is not None:
            args, kwargs = definition.decode(record.codec, record.body)
            return tuple(args), kwargs
    except BadPayload:  # they do not fit the code that is here: a reader may be looking for just that
        pass
    try:
        args, kwargs = msgspec.json.decode(record.body, type=tuple[list[Any], dict[str, Any]])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None, None
    return tuple(args), kwargs


def _failure(failure: model.Failure) -> FailureInfo:
    return FailureInfo(
        kind=failure.kind,
        error=failure.error,
        message=failure.message,
        traceback=failure.traceback,
        fingerprint=failure.fingerprint,
        attempt=failure.attempt,
        number=failure.number,
        member=failure.member,
        claimed_at=_moment(failure.claimed_at),
        started_at=_moment(failure.started_at),
        ended_at=_moment(failure.ended_at),
        retry_in=_length(failure.retry_in),
    )


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else moment_of(instant)


def _length(span: Span | None) -> timedelta | None:
    return None if span is None else length_of(span)
