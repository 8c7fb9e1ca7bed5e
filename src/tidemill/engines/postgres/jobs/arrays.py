"""New jobs as the arrays that our functions take."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.uniques import conflict_code, until_code
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.retry import Retry

_encode = msgspec.json.Encoder().encode

_SAME = object()
_BULKY = (0, 4)
"""Columns that are always sent whole: ids and bodies."""


def encode_retry(retry: Retry | None) -> bytes | None:
    """As the job keeps it."""
    return None if retry is None else _encode(retry)


_DEFAULTS: tuple[object, ...] = (
    _SAME, _SAME, _SAME, _SAME, _SAME, _SAME, None, "", 0, None, None, None, None, _SAME, None, None,
)  # fmt: skip
"""Of each column: what is left out when all jobs have it."""


def job_arrays(jobs: Sequence[NewJob]) -> list[list[object]]:
    """One array for each column, in the order of `store_v1`, all of the same length."""
    if not jobs:
        return [[] for _ in _DEFAULTS]
    rows = [
        (
            job.id, job.task, job.queue, job.priority, job.body, job.codec, job.headers, job.key or "",
            job.delay, job.at, job.expires, job.timeout, encode_retry(job.retry), job.attempts, job.on_dead,
            job.schedule,
        )
        for job in jobs
    ]  # fmt: skip
    return [list(column) for column in zip(*rows, strict=True)]


def short_arrays(jobs: Sequence[NewJob]) -> list[list[object]]:
    """The same without what needs no saying: a column of defaults is empty, one of equal values has one."""
    columns = job_arrays(jobs)
    for position, default in enumerate(_DEFAULTS):
        column = columns[position]
        if position in _BULKY or not column or column.count(column[0]) != len(column):
            continue
        if default is _SAME:
            del column[1:]
        elif column[0] == default:
            column.clear()
    return columns


def unique_parameters(jobs: Sequence[NewJob]) -> str | None:
    """The unique keys of jobs as `enqueue_unique_v1` takes them; None: there are none."""
    keys = [
        {
            "n": position, "id": job.id.hex(), "task": job.task, "key": job.unique.key,
            "until": until_code(job.unique), "period": job.unique.period,
            "conflict": conflict_code(job.unique), "latest": job.unique.latest,
        }
        for position, job in enumerate(jobs, 1) if job.unique is not None
    ]  # fmt: skip
    return _encode(keys).decode() if keys else None


def parent_arrays(jobs: Sequence[NewJob]) -> list[list[object]]:
    """Who waits for whom: positions of children, ids of parents; and each job's `parent_died`."""
    pairs = [(position, parent) for position, job in enumerate(jobs, 1) for parent in job.after]
    if not pairs:
        return [[], [], []]
    return [[child for child, _ in pairs], [parent for _, parent in pairs], [job.parent_died for job in jobs]]
