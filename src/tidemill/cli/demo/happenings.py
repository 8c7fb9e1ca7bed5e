"""What happened to a job between two reads of its record, in lines for people.

A read may miss a state that came and went, never a failure: those are numbered and kept."""

from collections.abc import Iterator

from tidemill.cli.output.job_text import brief
from tidemill.cli.output.text import length
from tidemill.model.jobs.job import Failure, JobRecord, JobState


def happenings(before: JobRecord | None, now: JobRecord) -> Iterator[tuple[str, str]]:
    """Lines (attempt n/m, what) about what is new."""
    known = before.failure_count if before else 0
    failures = [failure for failure in now.failures if failure.number > known]
    for failure in failures:
        yield f"{failure.attempt}/{now.max_attempts}", _failed(failure)
    changed = before is None or now.state is not before.state or now.fence != before.fence
    if changed and (what := _state(now, bool(failures))):
        yield attempt(now), what


def attempt(job: JobRecord) -> str:
    """n/m: the attempt that runs, or the last one that did."""
    return f"{job.attempts_begun}/{job.max_attempts}"


def waits(job: JobRecord) -> str:
    """The retry wait chosen after the last failure."""
    return length(job.error.retry_in) if job.error and job.error.retry_in is not None else ""


def _failed(failure: Failure) -> str:
    if failure.kind in ("crash", "lost"):
        return "its worker process died; it comes back"
    reason = {"timeout": "ran past its timeout"}.get(failure.kind, f"failed: {brief(failure)}")
    return f"{reason}; " + (
        "that was the last attempt" if failure.retry_in is None else f"again in {length(failure.retry_in)}"
    )


def _state(job: JobRecord, failed: bool) -> str:
    match job.state:
        case JobState.SCHEDULED if not failed:
            return f"waits {length((job.due_at or job.created_at) - job.created_at)}"
        case JobState.RUNNING:
            return f"runs on {job.member}" + (" in a process of its own" if job.suspect else "")
        case JobState.COMPLETED:
            return "completed"
        case JobState.DEAD:
            return "dead"
        case JobState.CANCELLED:
            return "cancelled"
    return ""
