"""From rows to the records that people see."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tidemill.engine.shared.records import tombstone
from tidemill.engines.postgres.db.connection import Row
from tidemill.model.jobs.job import STATES, Failure, JobRecord
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import Instant, Span

COLUMNS = (
    "id", "task", "queue", "priority", "state", "key", "lane", "seq", "attempts", "max_attempts",
    "crashes", "lost_runs", "snoozes", "suspect", "cancel_requested", "replays", "created_at", "due_at",
    "ready_at", "claimed_at", "started_at", "ended_at", "expires_at", "member", "fence", "settled_fence",
    "timeout", "retry", "codec", "waits_for", "on_dead", "schedule", "unique_key", "reason", "failures",
    "progress", "headers", "error", "form", "born", "body", "result",
)  # fmt: skip
"""Of the view `shown`, in its order, as far as they are shown."""
LISTED = ", ".join(("NULL::bytea" if name in ("body", "result") else name) for name in COLUMNS)
FORM = COLUMNS.index("form")
TOMBSTONE = 2

_retry = msgspec.json.Decoder(Retry).decode


class _Stored(msgspec.Struct, array_like=True):
    """A failure as SQL puts it together."""

    attempt: int
    number: int
    member: str
    claimed_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    retry_in: Span | None
    said: Failure


_stored = msgspec.json.Decoder(_Stored).decode


def failure_of(text: str) -> Failure:
    """One failure."""
    stored = _stored(text)
    return msgspec.structs.replace(
        stored.said,
        attempt=stored.attempt,
        number=stored.number,
        member=stored.member,
        claimed_at=stored.claimed_at,
        started_at=stored.started_at,
        ended_at=stored.ended_at,
        retry_in=stored.retry_in,
    )


def job_of(row: Row, failures: Iterable[str] = ()) -> JobRecord:
    """The record of a row with `COLUMNS`."""
    (
        job_id, task, queue, priority, state, key, lane, seq, attempts, max_attempts, crashes, lost_runs,
        snoozes, suspect, cancel_requested, replays, created_at, due_at, ready_at, claimed_at, started_at,
        ended_at, expires_at, member, fence, settled_fence, timeout, retry, codec, waits_for, on_dead,
        schedule, unique,
        reason, failure_count, progress, headers, error, _, _, body, result,
    ) = row[: len(COLUMNS)]  # fmt: skip
    fields: dict[str, Any] = {
        "id": job_id, "task": task, "queue": queue, "priority": priority, "state": STATES[state], "key":
        key or None, "group": lane.rpartition("\x1e")[2],
        "seq": seq, "attempts": attempts, "max_attempts": max_attempts,
        "crashes": crashes, "lost_runs": lost_runs, "snoozes": snoozes, "suspect": suspect,
        "cancel_requested": cancel_requested,
        "replays": replays, "created_at": created_at, "due_at": due_at, "ready_at": ready_at,
        "claimed_at": claimed_at, "started_at": started_at, "ended_at": ended_at, "expires_at":
        expires_at, "member": member, "fence": fence, "settled_fence": settled_fence, "timeout": timeout,
        "retry": None if retry is None else _retry(retry), "codec": codec, "body": body, "headers":
        headers, "result": result, "error": None if error is None else failure_of(error), "failures":
        tuple(map(failure_of, failures)), "failure_count": failure_count, "progress": progress,
        "waits_for": waits_for, "on_dead": on_dead, "schedule": schedule, "unique": unique,
        "reason": reason,
    }  # fmt: skip
    return JobRecord(**fields)


def tombstone_of(row: Row) -> JobRecord:
    """What is left of a job of which nothing is kept."""
    return tombstone(job_of(row))
