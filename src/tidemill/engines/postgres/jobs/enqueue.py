"""Storing new jobs: one function call."""

from collections.abc import Sequence

from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs.arrays import job_arrays, parent_arrays, short_arrays
from tidemill.model.jobs.job import NewJob
from tidemill.model.time import Instant

_MARKS = ", ".join(f"${n}" for n in range(1, 22))


async def enqueue(store: PostgresStore, jobs: Sequence[NewJob], now: Instant | None) -> list[bool]:
    """PostgresStore jobs that have been checked; True where created."""
    store.check()
    if not jobs:
        return []
    statement = store.sql("SELECT * FROM {schema}.enqueue_v1(" + _MARKS + ")")
    arrays = job_arrays(jobs) if any(job.after for job in jobs) else short_arrays(jobs)
    sending = store.enqueues.row(statement, *arrays, *parent_arrays(jobs), now, store.pubsub.lead())
    created, signals = await store.see_through(sending)
    store.pubsub.send(signals)
    stored: list[bool] = created
    return stored
