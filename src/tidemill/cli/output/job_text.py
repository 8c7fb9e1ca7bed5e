"""A job for people: a row of a listing, and everything about it."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from tidemill.cli.output.shaping import json_of, payload_of
from tidemill.cli.output.text import Column, length, lines, local, one_line
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import LIVE, Failure, JobRecord, JobState
from tidemill.model.jobs.run import StoredLine

COLUMNS = (
    Column("ID"),
    Column("STATE", state=True),
    Column("QUEUE"),
    Column("TASK"),
    Column("PRIO", right=True),
    Column("ATTEMPT", right=True),
    Column("SINCE"),
    Column("WORKER"),
    Column("ERROR"),
)


def row(job: JobRecord) -> tuple[object, ...]:
    """A job in `COLUMNS`."""
    return (
        show_id(job.id),
        job.state.value,
        job.queue,
        job.task,
        job.priority,
        attempt_of(job),
        local(_since(job)),
        job.member,
        brief(job.error),
    )


def attempt_of(job: JobRecord) -> str:
    """Attempt n/m: the one that runs, else those used up."""
    return f"{job.attempts_begun}/{job.max_attempts}"


def brief(failure: Failure | None) -> str:
    """A failure in a line: ValueError: no such user."""
    if failure is None:
        return ""
    name = failure.error.rpartition(".")[2] or failure.kind
    return f"{name}: {failure.message}" if failure.message else name


def _since(job: JobRecord) -> int | None:
    """The moment that matters in the job's present state."""
    moments = {
        JobState.BLOCKED: job.created_at,
        JobState.SCHEDULED: job.due_at,
        JobState.READY: job.ready_at,
        JobState.RUNNING: job.started_at or job.claimed_at,
    }
    return moments.get(job.state, job.ended_at)


def whole(job: JobRecord) -> str:
    """Everything known about a job."""
    facts = "\n".join(
        f"{name:<11} {one_line(value)}" for name, value in _facts(job) if value not in (None, "")
    )
    return "\n".join((facts, *(_failure(failure) for failure in job.failures)))


def _facts(job: JobRecord) -> Iterator[tuple[str, object]]:
    yield "id", show_id(job.id)
    yield "task", job.task
    yield "queue", job.queue
    yield "priority", job.priority
    yield "key", job.key
    yield "state", job.state.value + (", asked to stop" if job.cancel_requested and job.state in LIVE else "")
    yield "attempts", attempt_of(job)
    yield "crashes", f"{job.crashes}{' (runs in a process of its own)' if job.suspect else ''}"
    yield "lost runs", job.lost_runs or None
    yield "replays", job.replays or None
    yield "created", local(job.created_at)
    for name in ("due", "ready", "claimed", "started", "ended", "expires"):
        moment = getattr(job, f"{name}_at")
        yield {"ended": "finished"}.get(name, name), moment and local(moment)
    yield "worker", job.member
    yield "released", job.reason
    yield "snoozes", job.snoozes or None
    yield "timeout", job.timeout and length(job.timeout)
    yield "waits for", f"{job.waits_for} jobs" if job.waits_for else None
    yield "on dead", job.on_dead
    yield "schedule", job.schedule
    yield "unique key", job.unique
    yield "headers", _json(json_of(job.headers))
    yield "payload", payload_text(job)
    yield "progress", _json(json_of(job.progress))
    yield "result", _json(json_of(job.result))
    yield "failures", _kept(job)
    yield "group", job.dead_group


def payload_text(job: JobRecord) -> str:
    """A job's arguments as they are written in JSON."""
    if job.body is None:
        return "(dropped)"
    payload = payload_of(job)
    if payload is None:
        return f"({len(job.body):,} bytes that cannot be read, codec {job.codec})"
    return _json([payload.args, payload.kwargs]) or ""


def _kept(job: JobRecord) -> str | None:
    if not job.failure_count:
        return None
    left_out = job.failure_count - len(job.failures)
    return f"{job.failure_count}" + (f", of which {left_out:,} are not kept" if left_out else "")


def _failure(failure: Failure) -> str:
    head = f"failure {failure.number}: attempt {failure.attempt}, {failure.kind}, {local(failure.ended_at)}"
    if failure.member:
        head += f", worker {one_line(failure.member)}"
    if failure.retry_in is not None:
        head += f", tried again after {length(failure.retry_in)}"
    text = failure.traceback.rstrip() or brief(failure)
    return f"\n{head}\n" + "\n".join(f"    {line}" for line in lines(text).splitlines())


def log_line(line: StoredLine) -> str:
    """A line that a job wrote."""
    return f"{local(line.at)} {line.level:<7} {one_line(line.message)}"


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def print_whole(job: JobRecord) -> None:
    click.echo(whole(job))
