"""Looking at jobs and queues: the `inspect` facet."""

import time
from collections.abc import Sequence
from sqlite3 import Connection

from tidemill.engine.shared.checks import check_ids, check_limit, check_listing, check_number, check_why
from tidemill.engine.shared.finished import minutes_back, series_span
from tidemill.engine.shared.groups import group_walk
from tidemill.engine.shared.paging import read_cursor
from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.stats import StatsSpan
from tidemill.engines.sqlite.cluster import stats
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.order.positions import TOMBSTONE
from tidemill.engines.sqlite.read import groups, listing, rows
from tidemill.engines.sqlite.read.storage import storage
from tidemill.engines.sqlite.read.why import SqliteWhy
from tidemill.model.ids import JobId, check_id
from tidemill.model.jobs.job import STATES, JobRecord, JobState
from tidemill.model.jobs.run import Checkpoint, StoredLine
from tidemill.model.stats.series import StatsBy, StatsSeries
from tidemill.model.storage import Storage
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import (
    HEADS_LIMIT,
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

SQL = load_statements("tidemill.engines.sqlite", "inspect")


class SqliteInspect:
    """See `tidemill.engine.protocol.InspectFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def get(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[JobRecord | None]":
        wanted = check_ids(ids)
        return await self._session.read(lambda db: [_whole(db, job_id) for job_id in wanted])

    async def why(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[WhyFacts | None]":
        wanted = check_why(ids)
        at = time.time_ns() // 1_000 if now is None else now
        return await self._session.read(lambda db: SqliteWhy(db, at).facts(wanted))

    async def counts(self, *, window: Span = WINDOW, now: Instant | None = None) -> "list[QueueCounts]":
        until = time.time_ns() // 1_000 if now is None else now
        since = until - until % MINUTE - minutes_back(window) * MINUTE
        return await self._session.read(lambda db: _counts(db, since, until))

    async def series(
        self, *, since: Instant, until: Instant, step: Span, queue: str | None = None
    ) -> "list[SeriesPoint]":
        span = series_span(since, until, step, queue)
        found = await self._session.read(
            lambda db: db.execute(SQL.series, (step, span.first, until, queue)).fetchall()
        )
        points = {at: Finished(completed=c, failed=f, died=d, cancelled=k) for at, c, f, d, k in found}
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
        span = StatsSpan(since, until, step, by, queue, task)
        return await self._session.read(lambda db: stats.read(db, span))

    async def log(self, job: JobId, *, after: int = 0, limit: int = 1_000) -> "list[StoredLine]":
        check_number(after, "the number of lines to skip")
        check_limit(limit)
        check_id(job)
        found = await self._session.read(lambda db: db.execute(SQL.log, (job, limit, after)).fetchall())
        return [StoredLine(*row) for row in found]

    async def checkpoints(self, job: JobId) -> "list[Checkpoint]":
        check_id(job)
        found = await self._session.read(lambda db: db.execute(SQL.checkpoints, (job,)).fetchall())
        return [Checkpoint(name=name, value=value) for name, value in found]

    async def audit(self, *, before: int | None = None, limit: int = 100) -> "list[AuditEntry]":
        if before is not None:
            check_number(before, "the number of an entry")
        check_limit(limit)
        found = await self._session.read(lambda db: db.execute(SQL.audit, (before, limit)).fetchall())
        return [
            AuditEntry(number=number, at=at, by=by, action=action, target=target, detail=detail)
            for number, at, by, action, target, detail in found
        ]

    async def storage(self) -> Storage:
        url = self._session.url
        return await self._session.read(lambda db: storage(db, url))

    async def list(self, only: JobFilter, *, cursor: str | None = None, limit: int = 100) -> Page:
        check_listing(only, limit)
        at = read_cursor(only, cursor)
        return await self._session.read(lambda db: listing.page(db, only, at, limit))

    async def dead_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> GroupPage:
        walk = group_walk(queue, task, cursor, limit)
        return await self._session.read(lambda db: groups.page(db, walk))


def _whole(db: Connection, job_id: JobId) -> JobRecord | None:
    row = rows.find(db, job_id)
    if row is None or row[rows.FORM] == TOMBSTONE:
        return None
    return rows.job_of(row, rows.failures_of(db, row[0]))  # type: ignore[arg-type]


def _counts(db: Connection, since: Instant, until: Instant) -> list[QueueCounts]:
    windows = {
        queue: Finished(completed=completed, failed=failed, died=died, cancelled=cancelled)
        for queue, completed, failed, died, cancelled in db.execute(SQL.window, (since, until))
    }
    tallies: dict[int, dict[str, int]] = {}
    for queue, state, count in db.execute(SQL.tallies):
        tallies.setdefault(queue, {})[STATES[state].value] = count
    return [
        QueueCounts(
            queue=name,
            window=windows.get(pk, Finished()),
            oldest_ready_at=_oldest_ready(db, pk) if tallies.get(pk, {}).get(JobState.READY) else None,
            **tallies.get(pk, {}),
        )
        for pk, name in db.execute(SQL.queues).fetchall()
    ]


def _oldest_ready(db: Connection, queue: int) -> Instant | None:
    """The heads of the lanes: the order of ready jobs is skipped through, not walked."""
    moments: list[Instant] = []
    lane: tuple[int, int, str] = (-1, 0, "")
    while len(moments) < HEADS_LIMIT:
        head = db.execute(SQL.next_head, (queue, *lane)).fetchone()
        if head is None:
            break
        *found, moment = head
        lane = tuple(found)
        moments.append(moment)
    return min(moments, default=None)
