"""Storing new jobs: one function call."""

from collections.abc import Sequence

from tidemill.engine.merging import has_unique
from tidemill.engine.shared.records import stored_of
from tidemill.engine.shared.uniques import answers_of_all, may_move, once
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs.arrays import job_arrays, parent_arrays, short_arrays, unique_parameters
from tidemill.engines.postgres.jobs.naming import now_naming
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.jobs.move import Moves
from tidemill.model.time import Instant


async def enqueue(
    store: PostgresStore, jobs: Sequence[NewJob], moves: Moves | None, now: Instant | None
) -> list[Stored]:
    """Store jobs that have been checked."""
    store.check()
    if not jobs:
        return []
    if has_unique(jobs):
        return await _enqueue_unique(store, jobs, moves, now)
    children = any(job.after for job in jobs)
    arrays = job_arrays(jobs) if children else short_arrays(jobs)
    naming = now_naming(now, moves if children else None)
    created, _ = await store.change(
        store.enqueues,
        "enqueue_v1",
        *arrays,
        *parent_arrays(jobs),
        naming,
        store.pubsub.lead(),
        moves=moves,
    )
    return stored_of(jobs, created)


async def _enqueue_unique(
    store: PostgresStore, jobs: Sequence[NewJob], moves: Moves | None, now: Instant | None
) -> list[Stored]:
    different = once(jobs)
    naming = now_naming(now, moves if any(map(may_move, jobs)) else None)
    parameters = [*job_arrays(different), *parent_arrays(different), unique_parameters(different), False]
    met, created, _, _ = await store.change(
        store.enqueues, "enqueue_unique_v1", *parameters, naming, moves=moves
    )
    return answers_of_all(jobs, different, map(Stored, map(bytes, met), created))
