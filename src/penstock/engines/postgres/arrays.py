"""New jobs as the arrays that our functions take, and other edges of a call."""

from collections.abc import Sequence

import msgspec

from penstock.engine.protocol import BATCH_LIMIT
from penstock.model.errors import BadInput
from penstock.model.ids import JobId, check_id
from penstock.model.job import NewJob, check_new_job
from penstock.model.retry import Retry

_encode = msgspec.json.Encoder().encode


def check_batch(size: int, limit: int = BATCH_LIMIT) -> None:
    """Refuse a call with more items than one step takes."""
    if not 0 <= size <= limit:
        raise BadInput(f"one call takes at most {limit:,} items, not {size:,}: split it")


def check_ids(ids: Sequence[JobId]) -> list[JobId]:
    """The same ids, or `BadInput`."""
    check_batch(len(ids))
    return [check_id(job_id) for job_id in ids]


def check_jobs(jobs: Sequence[NewJob]) -> None:
    """Refuse before anything is stored."""
    check_batch(len(jobs))
    for job in jobs:
        check_new_job(job)


def encode_retry(retry: Retry | None) -> bytes | None:
    """As the job keeps it."""
    return None if retry is None else _encode(retry)


def job_arrays(jobs: Sequence[NewJob]) -> list[list[object]]:
    """One array for each column, in the order of `store_v1`."""
    if not jobs:
        return [[] for _ in range(16)]
    rows = [
        (
            job.id, job.task, job.queue, job.priority, job.body, job.codec, job.headers, job.key or "",
            job.delay, job.at, job.expires, job.timeout, encode_retry(job.retry), job.attempts, job.on_dead,
            job.schedule,
        )
        for job in jobs
    ]  # fmt: skip
    return [list(column) for column in zip(*rows, strict=True)]


def parent_arrays(jobs: Sequence[NewJob]) -> list[list[object]]:
    """Who waits for whom: places of children, ids of parents; and each job's `parent_died`."""
    pairs = [(place, parent) for place, job in enumerate(jobs, 1) for parent in job.after]
    if not pairs:
        return [[], [], []]
    return [[child for child, _ in pairs], [parent for _, parent in pairs], [job.parent_died for job in jobs]]
