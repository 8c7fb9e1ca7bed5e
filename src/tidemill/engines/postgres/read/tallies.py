"""How many jobs are in each state.

Few jobs are counted by the indexes. Many are taken from a recount, which walks an index once and takes at
most a twentieth of the time.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.model.jobs.job import STATES
from tidemill.model.time import SECOND, Instant, Span
from tidemill.model.view import HEADS_LIMIT, Finished, QueueCounts

SQL = load_statements("tidemill.engines.postgres", "inspect")

MANY = 100_000
DEAR, KEPT_S = 50_000, 1.0
"""A count of so many jobs is used again for a second."""
SHARE = 20

_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended('recount', '{schema}.job'::regclass::oid::bigint))"


class Recount:
    """Counts again in the background, one process at a time, and at most a twentieth of the time."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._not_before = 0.0

    def begin(self, work: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Run these statements, unless a recount runs or has just run."""
        if work and self._task is None and time.monotonic() >= self._not_before:
            self._task = self._store.spawn(self._run(work))

    async def _run(self, work: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        begin = time.monotonic()

        async def count(connection: "Connection[Any]") -> None:
            async with connection.transaction():
                if await connection.fetchval(_LOCK.replace("{schema}", f'"{self._store.url.schema}"')):
                    for statement, parameters in work:
                        await connection.execute(self._store.sql(statement), *parameters)

        try:
            await self._store.commands.use(count)
        finally:
            self._task = None
            self._not_before = time.monotonic() + SHARE * (time.monotonic() - begin)


class Tallies:
    """The counts of one engine object."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._kept: list[Row] = []
        self._kept_at = -KEPT_S
        self._dear = False
        self._recount = Recount(store)

    async def counts(self, window: Span, now: Instant | None) -> list[QueueCounts]:
        """Every queue, by name."""
        begin = time.monotonic()
        old = begin - self._kept_at if self._dear and begin - self._kept_at < KEPT_S else None

        async def work(
            connection: "Connection[Any]",
        ) -> tuple[list[Row], list[Row], list[Row], dict[str, Any]]:
            sql = self._store.sql
            states = self._kept if old is not None else await connection.fetch(sql(SQL.counts), MANY + 1)
            windows = await connection.fetch(sql(SQL.window), now, window)
            many = any(count > MANY for row in states for count in row[1:])
            oldest = dict(await connection.fetch(sql(SQL.oldest), HEADS_LIMIT))
            tallies = await connection.fetch(sql(SQL.tallies), now) if many else []
            return list(states), windows, tallies, oldest

        states, windows, tallies, oldest = await self._store.snapshot(work)
        if old is None:
            self._kept, self._kept_at = states, begin
            self._dear = sum(count for row in states for count in row[1:]) > DEAR
        known = {(queue, state): (count, age) for queue, state, count, age in tallies}
        self._recount.begin(
            [(SQL.recount, (row[0], state)) for row in states for state in range(7) if row[1 + state] > MANY]
        )
        ended = {queue: Finished(completed=c, failed=f, died=d, cancelled=k) for queue, c, f, d, k in windows}
        age = round((old or 0) * SECOND)
        return [_of_queue(row, known, ended, oldest.get(row[0]), age) for row in states]


def _of_queue(
    row: Row,
    known: dict[tuple[str, int], tuple[int, Span]],
    ended: dict[str, Finished],
    oldest: Instant | None,
    age: Span,
) -> QueueCounts:
    name, counts = row[0], {}
    for code, state in enumerate(STATES):
        count = row[1 + code]
        if count > MANY and (name, code) in known:
            count, counted = known[name, code]
            age = max(age, counted)
        counts[state.value] = count
    return QueueCounts(
        queue=name, window=ended.get(name, Finished()), age=age, oldest_ready_at=oldest, **counts
    )
