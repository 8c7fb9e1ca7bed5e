"""Pages of jobs, by the structures that claims and retention already need.

A listing is a walk over (state, queue) in a fixed order, and within each by the key of a sorted set. The
cursor holds the place in the walk and the key of the last job looked at, so a page costs the same however
deep it lies. Task, key, tag and text are tried on each job on the way, within a budget. A script looks at
500 jobs at most, because it holds up everybody else: a filtered page is put together from several moments.
"""

import base64
import binascii
from collections.abc import AsyncIterator

import msgspec

from tidemill.engines.redis.call import Call
from tidemill.engines.redis.rows import BODY, BORN, Row, job_of
from tidemill.engines.redis.store import Store
from tidemill.model.errors import BadInput
from tidemill.model.job import STATES, Job, JobState
from tidemill.model.lane import PRIORITIES
from tidemill.model.view import SCAN_LIMIT, JobFilter, Page, matches, states_of

CHUNK = 500
"""The most jobs that one script looks at."""

Key = list[int | str]


class _Cursor(msgspec.Struct, array_like=True):
    """Where a page ended."""

    state: JobState
    queue: str
    key: Key


_TYPES: dict[JobState, tuple[type, ...]] = {
    JobState.BLOCKED: (int,),
    JobState.SCHEDULED: (int, int),
    JobState.READY: (int, int, str, int),
    JobState.RUNNING: (int,),
    JobState.COMPLETED: (int, int),
    JobState.DEAD: (int, int),
    JobState.CANCELLED: (int, int),
}


def place_of(only: JobFilter, cursor: str | None) -> _Cursor | None:
    """The place that a cursor names, or `BadInput`."""
    if cursor is None:
        return None
    try:
        at = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=_Cursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise BadInput(f"{cursor!r} is not a cursor that a listing gave; begin again without one") from None
    if at.state not in states_of(only):
        raise BadInput("this cursor belongs to a listing of other states; begin again without one")
    types = _TYPES[at.state]
    fits = len(at.key) == len(types) and all(
        type(part) is kind and (isinstance(part, str) or 0 <= part < 1 << 53)
        for part, kind in zip(at.key, types, strict=True)
    )
    if fits and at.state is JobState.READY:
        fits = at.key[0] in PRIORITIES and at.key[1] in (0, 1)
    if not fits:
        raise BadInput("this cursor belongs to another listing; begin again without one")
    return at


async def page(store: Store, only: JobFilter, at: _Cursor | None, limit: int) -> Page:
    """The next jobs of a listing."""
    jobs: list[Job] = []
    scanned, last = 0, at
    filtered = any(part is not None for part in (only.task, only.key, only.tag, only.text))
    size = CHUNK if filtered else min(CHUNK, limit + 1)
    async for job, row in _walk(store, only, at, size):
        if len(jobs) >= limit or scanned >= SCAN_LIMIT:
            return Page(jobs=jobs, cursor=None if last is None else _encode(last), scanned=scanned)
        scanned += 1
        last = _Cursor(job.state, job.queue, _key(job, row))
        if matches(only, job, row[BODY] or b""):
            jobs.append(msgspec.structs.replace(job, body=None) if job.body is not None else job)
    return Page(jobs=jobs, cursor=None, scanned=scanned)


async def _walk(
    store: Store, only: JobFilter, at: _Cursor | None, size: int
) -> AsyncIterator[tuple[Job, Row]]:
    states = [STATES.index(state) for state in states_of(only)]
    while True:
        call = Call(
            states=states,
            names=None if only.queue is None else [only.queue],
            state=None if at is None else STATES.index(at.state),
            queue=None if at is None else at.queue,
            key=None if at is None else at.key,
            size=size,
            task=only.task,
            text=only.text is not None,
        )
        rows = await store.run(store.reads, "list", call)
        for row in rows:
            job = job_of(row)
            yield job, row
            at = _Cursor(job.state, job.queue, _key(job, row))
        if len(rows) < size:
            return


def _key(job: Job, row: Row) -> Key:
    match job.state:
        case JobState.BLOCKED | JobState.RUNNING:
            return [row[BORN]]
        case JobState.SCHEDULED:
            return [job.due_at or 0, job.seq]
        case JobState.READY:
            return [job.priority, int(job.suspect), job.group, job.seq]
        case _:
            return [job.ended_at or 0, row[BORN]]


def _encode(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()
