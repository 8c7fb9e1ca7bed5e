"""Storing new jobs: one function call for what has come together."""

from collections.abc import Hashable, Sequence

from tidemill.engine.merging import ALONE, Merging
from tidemill.engines.postgres.arrays import job_arrays, parent_arrays, short_arrays
from tidemill.engines.postgres.store import PostgresStore
from tidemill.model.job import NewJob
from tidemill.model.time import Instant

_MARKS = ", ".join(f"${n}" for n in range(1, 22))
_Arrays = list[object]


def enqueuer(store: PostgresStore) -> Merging[_Arrays]:
    """Of one engine object."""

    async def send(arrays: _Arrays, now: Instant | None) -> Sequence[bool]:
        statement = store.sql("SELECT * FROM {schema}.enqueue_v1(" + _MARKS + ")")
        created, signals = await store.enqueues.row(statement, *arrays, now, store.pubsub.lead())
        store.pubsub.send(signals)
        stored: list[bool] = created
        return stored

    return Merging(store, form=_form, pack=_pack, send=send)


def _form(jobs: Sequence[NewJob]) -> Hashable:
    return ALONE if any(job.after for job in jobs) else "plain"


def _pack(jobs: Sequence[NewJob], form: Hashable) -> _Arrays:
    arrays = job_arrays(jobs) if form is ALONE else short_arrays(jobs)
    return [*arrays, *parent_arrays(jobs)]
