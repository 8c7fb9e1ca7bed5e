"""The `transactions` facet: enqueue on a connection of the caller's own.

One call of a function that inserts nothing with a unique index except the ids, so that nobody ever waits for
the caller's transaction, and that sends the signal with its commit. Placeholders are $1, $2, ..."""

from collections.abc import Sequence

from penstock.engines.postgres.arrays import check_jobs, job_arrays
from penstock.engines.postgres.store import Store
from penstock.model.errors import BadInput
from penstock.model.job import NewJob
from penstock.model.view import Statement

_TYPES = (
    "bytea", "text", "text", "smallint", "bytea", "smallint", "bytea", "text",
    "bigint", "bigint", "bigint", "bigint", "bytea", "integer", "text", "text",
)  # fmt: skip
_MARKS = ", ".join(f"${n}::{name}[]" for n, name in enumerate(_TYPES, 1))


class PostgresTransactions:
    """See `penstock.engine.protocol.Transactions`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Statement]:
        check_jobs(jobs)
        if any(job.after for job in jobs):
            raise BadInput("after= cannot be used with transaction=: enqueue the children separately")
        if not jobs:
            return []
        sql = self._store.sql(f"SELECT {{schema}}.enqueue_here_v1({_MARKS}, ${len(_TYPES) + 1}::text)")
        return [Statement(sql, (*job_arrays(jobs), self._store.place.channel))]
