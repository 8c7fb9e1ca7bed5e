"""The edge of a call, the same on every engine: what is refused before anything is stored."""

from collections.abc import Sequence

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId, check_id
from tidemill.model.job import NewJob, check_new_jobs
from tidemill.model.lane import check_priority
from tidemill.model.names import check_queue, check_task
from tidemill.model.run import Completed, Failed, Settlement, check_result
from tidemill.model.time import Span, check_span
from tidemill.model.view import TaskEntry

LOCK_NAME_LIMIT = 200


def check_batch(size: int, limit: int = BATCH_LIMIT) -> None:
    """Refuse a call with more items than one step takes."""
    if not 0 <= size <= limit:
        raise BadInput(f"one call takes at most {limit:,} items, not {size:,}: split it")


def check_ids(ids: Sequence[JobId]) -> list[JobId]:
    """The same ids, or `BadInput`."""
    check_batch(len(ids))
    return [check_id(job_id) for job_id in ids]


def check_jobs(jobs: Sequence[NewJob]) -> None:
    """Refuse jobs that cannot be stored."""
    check_batch(len(jobs))
    check_new_jobs(jobs)


def check_entries(entries: Sequence[TaskEntry]) -> None:
    """Refuse tasks of which no job could be stored with the defaults that they name."""
    check_batch(len(entries))
    for entry in entries:
        check_task(entry.name)
        check_queue(entry.queue)
        check_priority(entry.priority)
        if entry.timeout is not None:
            check_span(entry.timeout)


def check_lock(name: str, ttl: Span) -> None:
    """Refuse a lease that cannot be held."""
    if not name or len(name) > LOCK_NAME_LIMIT:
        raise BadInput(f"a lock's name has 1 to {LOCK_NAME_LIMIT} characters")
    if ttl <= 0:
        raise BadInput("a lock's ttl must be longer than 0 s")


def check_settlements(settlements: Sequence[Settlement]) -> None:
    """Refuse outcomes that cannot be recorded."""
    check_batch(len(settlements))
    for settlement in settlements:
        outcome = settlement.outcome
        if isinstance(outcome, Completed):
            check_result(outcome.result)
        elif isinstance(outcome, Failed) and outcome.retry_in is not None:
            check_span(outcome.retry_in)
        check_span(settlement.ran)
        if settlement.then is not None:
            check_jobs(settlement.then.jobs)
            if any(job.after for job in settlement.then.jobs):
                raise BadInput("jobs that follow an outcome cannot wait for others (after=)")
