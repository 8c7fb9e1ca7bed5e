"""Reading jobs and queues: the `inspect` facet."""

from collections.abc import Sequence
from typing import Any

from tidemill.engine.shared.checks import check_ids, check_limit, check_listing, check_number, check_why
from tidemill.engine.shared.finished import minutes_back, series_span
from tidemill.engine.shared.groups import group_walk
from tidemill.engine.shared.paging import read_cursor
from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.stats import StatsSpan
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.read import listing, stats
from tidemill.engines.postgres.read.groups import Groups
from tidemill.engines.postgres.read.rows import job_of
from tidemill.engines.postgres.read.tallies import Tallies
from tidemill.engines.postgres.read.why import why
from tidemill.model.ids import JobId, check_id
from tidemill.model.jobs.job import JobRecord
from tidemill.model.jobs.run import Checkpoint, StoredLine
from tidemill.model.stats.series import StatsBy, StatsSeries
from tidemill.model.storage import HolderKind, Part, Storage, StorageHolder
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import (
    WINDOW,
    AuditEntry,
    Finished,
    GroupPage,
    JobFilter,
    Page,
    QueueCounts,
    SeriesPoint,
)
from tidemill.model.why.facts import WhyFacts

SQL = load_statements("tidemill.engines.postgres", "inspect")
STORAGE = load_statements("tidemill.engines.postgres", "storage")


class PostgresInspect:
    """See `tidemill.engine.protocol.InspectFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._tallies = Tallies(store)
        self._groups = Groups(store)

    async def get(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[JobRecord | None]":
        rows = await self._store.read(SQL.get, check_ids(ids))
        found = {row[0]: job_of(row, row[-1]) for row in rows}
        return [found.get(job_id) for job_id in ids]

    async def why(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[WhyFacts | None]":
        return await why(self._store, check_why(ids), now)

    async def counts(self, *, window: Span = WINDOW, now: Instant | None = None) -> "list[QueueCounts]":
        return await self._tallies.counts(minutes_back(window) * MINUTE, now)

    async def series(
        self, *, since: Instant, until: Instant, step: Span, queue: str | None = None
    ) -> "list[SeriesPoint]":
        span = series_span(since, until, step, queue)
        rows = await self._store.read(SQL.series, step, span.first, until, queue)
        points = {at: Finished(completed=c, failed=f, died=d, cancelled=k) for at, c, f, d, k in rows}
        return span.points(points)

    async def stats(
        self,
        *,
        since: Instant,
        until: Instant,
        step: Span | None = None,
        by: StatsBy = "queue",
        queue: str | None = None,
        task: str | None = None,
    ) -> "list[StatsSeries]":
        return await stats.read(self._store, StatsSpan(since, until, step, by, queue, task))

    async def log(self, job: JobId, *, after: int = 0, limit: int = 1_000) -> "list[StoredLine]":
        check_number(after, "the number of lines to skip")
        check_limit(limit)
        rows = await self._store.read(SQL.log, check_id(job), limit, after)
        return [
            StoredLine(fence, number, at, level, message.decode())
            for fence, number, at, level, message in rows
        ]

    async def checkpoints(self, job: JobId) -> "list[Checkpoint]":
        rows = await self._store.read(SQL.checkpoints, check_id(job))
        return [Checkpoint(name=name, value=value) for name, value in rows]

    async def audit(self, *, before: int | None = None, limit: int = 100) -> "list[AuditEntry]":
        if before is not None:
            check_number(before, "the number of an entry")
        check_limit(limit)
        return [
            AuditEntry(number=number, at=at, by=by, action=action, target=target, detail=detail)
            for number, at, by, action, target, detail in await self._store.read(SQL.audit, before, limit)
        ]

    async def storage(self) -> Storage:
        async def work(connection: "Connection[Any]") -> Storage:
            parts = [
                Part(name=name, bytes=size, rows=rows, dead=dead)
                for name, size, rows, dead in await connection.fetch(STORAGE.parts, self._store.url.schema)
            ]
            holders = [
                StorageHolder(
                    kind=HolderKind(kind), name=name, age=age, behind=behind, bytes=size, state=state,
                    application=application, user=user,
                )
                for kind, name, age, behind, size, state, application, user
                in await connection.fetch(STORAGE.holders)
            ]  # fmt: skip
            cleared = await connection.fetchval(STORAGE.cleared)
            size = sum(part.bytes for part in parts)
            return Storage(bytes=size, parts=parts, holders=holders, cleared=cleared)

        return await self._store.snapshot(work)

    async def list(self, only: JobFilter, *, cursor: str | None = None, limit: int = 100) -> Page:
        check_listing(only, limit)
        at = read_cursor(only, cursor)

        async def work(connection: "Connection[Any]") -> Page:
            return await listing.page(connection, self._store.sql, only, at, limit)

        return await self._store.snapshot(work)

    async def dead_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> GroupPage:
        return await self._groups.page(group_walk(queue, task, cursor, limit))
