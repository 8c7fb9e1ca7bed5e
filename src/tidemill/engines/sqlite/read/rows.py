"""From rows to the records that people see."""

import sqlite3
from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.records import tombstone
from tidemill.engines.sqlite.order.positions import group_in
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import STATES, Failure, JobRecord, JobState
from tidemill.model.jobs.retry import Retry

_COLUMNS = (
    "pk", "id", "task", "queue", "priority", "state", "key", "lane", "seq", "attempts", "max_attempts",
    "crashes", "lost_runs", "snoozes", "suspect", "cancel_requested", "replays", "created_at", "due_at",
    "ready_at", "claimed_at", "started_at", "ended_at", "expires_at", "member", "fence", "settled_fence",
    "timeout", "retry", "codec", "waits_for", "on_dead", "schedule", "unique_key", "reason", "failures",
    "progress", "headers", "error", "form",
)  # fmt: skip
_SPECIAL = {
    "queue": "(SELECT name FROM queue WHERE pk = job_now.queue)",
    "error": "(SELECT record FROM failure WHERE job = job_now.pk AND number = job_now.failures)",
}
_SELECT = "SELECT " + ", ".join(_SPECIAL.get(column, f"job_now.{column}") for column in _COLUMNS)
LISTED = f"{_SELECT}, NULL, NULL"
WHOLE = f"{_SELECT}, job_now.body, job_now.result"

_failure = msgspec.json.Decoder(Failure).decode
_retry = msgspec.json.Decoder(Retry).decode


def job_of(row: Sequence[object], failures: tuple[Failure, ...] = ()) -> JobRecord:
    """The record of a row selected by `LISTED` or `WHOLE`."""
    (
        _, job_id, task, queue, priority, state, key, lane, seq, attempts, max_attempts,
        crashes, lost_runs, snoozes, suspect, cancel_requested, replays, created_at, due_at, ready_at,
        claimed_at, started_at, ended_at, expires_at, member, fence, settled_fence, timeout,
        retry, codec, waits_for, on_dead, schedule, unique, reason, failure_count, progress, headers,
        error, _, body, result,
    ) = row  # fmt: skip
    fields: dict[str, object] = {
        "id": job_id, "task": task, "queue": queue, "priority": priority,
        "state": state_of(state), "key": key, "group": group_in(str(lane)), "seq": seq,
        "attempts": attempts, "max_attempts": max_attempts, "crashes": crashes, "lost_runs": lost_runs,
        "snoozes": snoozes,
        "suspect": bool(suspect), "cancel_requested": bool(cancel_requested), "replays": replays,
        "created_at": created_at, "due_at": due_at, "ready_at": ready_at, "claimed_at": claimed_at,
        "started_at": started_at, "ended_at": ended_at, "expires_at": expires_at,
        "member": member or "", "fence": fence, "settled_fence": settled_fence, "timeout": timeout,
        "retry": None if retry is None else _retry(retry),  # type: ignore[arg-type]
        "codec": codec, "body": body, "headers": headers, "result": result,
        "error": None if error is None else _failure(error),  # type: ignore[arg-type]
        "failures": failures, "failure_count": failure_count, "progress": progress,
        "waits_for": waits_for, "on_dead": on_dead, "schedule": schedule, "unique": unique, "reason": reason,
    }  # fmt: skip
    return JobRecord(**fields)  # type: ignore[arg-type]


def state_of(code: object) -> JobState:
    """The state that a stored number means."""
    return STATES[int(code)]  # type: ignore[call-overload]


def failures_of(db: sqlite3.Connection, pk: int) -> tuple[Failure, ...]:
    """The kept failures of a job, oldest first."""
    rows = db.execute("SELECT record FROM failure WHERE job = ? ORDER BY number", (pk,))
    return tuple(_failure(record) for (record,) in rows)


def tombstone_of(row: Sequence[object]) -> JobRecord:
    """What is left of a job that was deleted on completion."""
    return tombstone(job_of(row))


def find(db: sqlite3.Connection, job_id: JobId) -> Sequence[object] | None:
    """The row of one job, whole."""
    row: Sequence[object] | None = db.execute(f"{WHOLE} FROM job_now WHERE id = ?", (job_id,)).fetchone()
    return row


FORM = -3
"""The position of `form` in a row."""
