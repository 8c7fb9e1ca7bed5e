"""What is stored and shown of jobs and members, the same in every store."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import JobRecord, NewJob, Stored
from tidemill.model.member import MemberInfo, MemberRecord, health
from tidemill.model.time import Instant
from tidemill.model.view import TaskEntry

_encode = msgspec.json.Encoder().encode
decode_member = msgspec.json.Decoder(MemberInfo).decode


def encode_member(info: MemberInfo) -> bytes:
    """As it is stored. `BadInput` where it could not be read again: then the members could not be listed."""
    try:
        encoded = _encode(info)
        decode_member(encoded)
        return encoded
    except (UnicodeError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise BadInput(f"a member cannot be stored as it describes itself: {str(error)[:200]}") from None


def member_of(row: Sequence[Any], now: Instant) -> MemberRecord:
    """From the columns: encoded, since, heartbeat_at, steady_since, running; with its health at this
    moment."""
    encoded, since, heartbeat_at, steady_since, running = row
    info = decode_member(encoded)
    return MemberRecord(
        info=info,
        since=since,
        heartbeat_at=heartbeat_at,
        steady_since=steady_since,
        health=health(info, heartbeat_at, now),
        running=running,
    )


def stored_of(jobs: Sequence[NewJob], created: Iterable[object]) -> list[Stored]:
    """The answer to an enqueue of which every job is known by its own id."""
    return [Stored(job.id, bool(new)) for job, new in zip(jobs, created, strict=True)]


def without_pause(entry: TaskEntry) -> TaskEntry:
    """As it is published: a pause is kept beside it."""
    if entry.paused_at is None:
        return entry
    return msgspec.structs.replace(entry, paused_at=None, paused_by="", paused_why="")


def with_pause(entry: TaskEntry, at: Instant | None, by: str, why: str) -> TaskEntry:
    """As it is shown."""
    if at is None:
        return entry
    return msgspec.structs.replace(entry, paused_at=at, paused_by=by, paused_why=why)


def tombstone(job: JobRecord) -> JobRecord:
    """What is known of a job of which nothing is kept."""
    return JobRecord(
        id=job.id, task=job.task, queue=job.queue, priority=job.priority, state=job.state,
        settled_fence=job.settled_fence, ended_at=job.ended_at,
    )  # fmt: skip
