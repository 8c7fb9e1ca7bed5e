"""Pages of jobs, by the structures that claims and retention already need.

`engine.shared.paging` has the cursor; `list.lua` has the walk over (state, queue). What no order answers is
tried on each job on the way, within a budget. A script scans 500 jobs at most, because it holds up all other
clients: a filtered page is put together from several moments.
"""

from collections.abc import AsyncIterator

import msgspec

from tidemill.engine.shared.paging import Cursor, CursorKey, PageBuilder, chunk_size
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.read.rows import ASIDE, BODY, BORN, Row, job_of
from tidemill.model.jobs.fingerprint import read_group
from tidemill.model.jobs.job import STATES, JobRecord, JobState
from tidemill.model.view import JobFilter, Page, states_of

CHUNK = 500
"""The most jobs that one script scans."""


async def page(store: RedisStore, only: JobFilter, at: Cursor | None, limit: int) -> Page:
    """The next jobs of a listing."""
    built = PageBuilder(only, at, limit)
    async for cursor, job, body in _walk(store, only, at, chunk_size(only, limit, CHUNK)):
        if built.full:
            return built.page(more=True)
        built.scan(cursor, job, body)
    return built.page(more=False)


async def _walk(
    store: RedisStore, only: JobFilter, at: Cursor | None, size: int
) -> AsyncIterator[tuple[Cursor, JobRecord, bytes]]:
    states = [STATES.index(state) for state in states_of(only)]
    while True:
        call = ScriptCall(
            states=states,
            names=None if only.queue is None else [only.queue],
            state=None if at is None else STATES.index(at.state),
            queue=None if at is None else at.queue,
            key=None if at is None else at.key,
            size=size,
            task=only.task,
            group=None if only.group is None else "\0".join(read_group(only.group)),
            since=only.since,
            till=only.until,
            priority=only.priority,
            text=only.text is not None,
        )
        rows = await store.run(store.reads, "list", call)
        for row in rows:
            job = job_of(row)
            at = Cursor(job.state, job.queue, _key(job, row))
            listed = msgspec.structs.replace(job, body=None) if job.body is not None else job
            yield at, listed, row[BODY] or b""
        if len(rows) < size:
            return


def _key(job: JobRecord, row: Row) -> CursorKey:
    match job.state:
        case JobState.BLOCKED | JobState.RUNNING:
            return [row[BORN]]
        case JobState.SCHEDULED:
            return [job.due_at or 0, job.seq]
        case JobState.READY:
            if row[ASIDE]:
                return [job.priority, 2 + job.suspect, f"{job.task}\x1e{job.group}", job.seq]
            return [job.priority, int(job.suspect), job.group, job.seq]
        case _:
            return [job.ended_at or 0, row[BORN]]
