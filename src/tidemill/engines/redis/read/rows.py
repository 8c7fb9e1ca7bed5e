"""From the answers of scripts to the records that people see."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tidemill.engine.shared.records import tombstone
from tidemill.model.jobs.job import STATES, Failure, JobRecord
from tidemill.model.jobs.retry import Retry
from tidemill.model.view import DeadGroup

Row = Sequence[Any]

TOMBSTONE, BORN, ASIDE, BODY = 38, 39, 40, 41
"""Positions in a row of `show.lua`."""

_retry = msgspec.json.Decoder(Retry).decode


def text(value: bytes) -> str:
    return value.decode()


def maybe_text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def failure_of(row: Row) -> Failure:
    """One failure."""
    (
        kind, error, message, traceback, attempt, number, member, claimed_at, started_at, ended_at, retry_in,
        fingerprint,
    ) = row  # fmt: skip
    return Failure(
        kind=kind.decode(), error=error.decode(), message=message.decode(), traceback=traceback.decode(),
        attempt=attempt, number=number, member=member.decode(), claimed_at=_known(claimed_at),
        started_at=_known(started_at), ended_at=ended_at, retry_in=_known(retry_in),
        fingerprint=fingerprint.decode(),
    )  # fmt: skip


def _known(number: int) -> int | None:
    return None if number < 0 else number


def job_of(row: Row) -> JobRecord:
    """The record of a row of `show.lua`."""
    (
        job_id, task, queue, priority, state, key, group, seq, attempts, max_attempts, crashes, lost_runs,
        snoozes, suspect, cancel_requested, replays, created_at, due_at, ready_at, claimed_at, started_at,
        ended_at, expires_at, member, fence, settled_fence, timeout, retry, codec, waits_for, on_dead,
        schedule, unique,
        reason, failure_count, progress, headers, error, _, _, _, body, result, failures,
    ) = row  # fmt: skip
    kept = sorted((failure_of(failure) for failure in failures), key=lambda failure: failure.number)
    return JobRecord(
        id=job_id, task=task.decode(), queue=queue.decode(), priority=priority, state=STATES[state],
        key=maybe_text(key), group=group.decode(), seq=seq, attempts=attempts, max_attempts=max_attempts,
        crashes=crashes, lost_runs=lost_runs, snoozes=snoozes, suspect=bool(suspect),
        cancel_requested=bool(cancel_requested),
        replays=replays, created_at=created_at, due_at=due_at, ready_at=ready_at, claimed_at=claimed_at,
        started_at=started_at, ended_at=ended_at, expires_at=expires_at, member=member.decode(), fence=fence,
        settled_fence=settled_fence, timeout=timeout, retry=None if retry is None else _retry(retry),
        codec=codec, body=body, headers=headers, result=result,
        error=None if error is None else failure_of(error), failures=tuple(kept),
        failure_count=failure_count, progress=progress, waits_for=waits_for, on_dead=maybe_text(on_dead),
        schedule=maybe_text(schedule), unique=maybe_text(unique), reason=maybe_text(reason),
    )  # fmt: skip


def group_of(row: Row) -> DeadGroup:
    """A dead-letter group, as `groups.lua` answers it."""
    queue, member, count, first_at, last_at, sample, failure = row
    task, _, fingerprint = member.decode().partition("\0")
    died_of = Failure() if failure is None else failure_of(failure)
    return DeadGroup(
        queue=queue.decode(), task=task, fingerprint=fingerprint, count=count, first_at=first_at,
        last_at=last_at, sample=sample, kind=died_of.kind, error=died_of.error, message=died_of.message,
    )  # fmt: skip


def tombstone_of(row: Row) -> JobRecord:
    """What is left of a job of which nothing is kept."""
    return tombstone(job_of(row))
