"""Reading jobs and queues: the `inspect` facet."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from tidemill.engine.shared.checks import check_ids, check_limit, check_listing, check_number, check_why
from tidemill.engine.shared.finished import minutes_back, series_span
from tidemill.engine.shared.groups import group_walk
from tidemill.engine.shared.paging import read_cursor
from tidemill.engine.shared.stats import StatsSpan
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.schema import evicts
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.read.listing import page
from tidemill.engines.redis.read.rows import group_of, job_of
from tidemill.engines.redis.read.why import why
from tidemill.model.ids import JobId, check_id
from tidemill.model.jobs.job import STATES, JobRecord
from tidemill.model.jobs.run import Checkpoint, StoredLine
from tidemill.model.stats.series import StatsBy, StatsSeries
from tidemill.model.storage import Part, Storage
from tidemill.model.time import HOUR, Instant, Span
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

_decode = msgspec.msgpack.Decoder(tuple[int, ...]).decode

Rows = Sequence[Sequence[Any]]


class RedisInspect:
    """See `tidemill.engine.protocol.InspectFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def get(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[JobRecord | None]":
        call = ScriptCall(count=len(ids))
        call.add(*check_ids(ids))
        return [None if row is None else job_of(row) for row in await self._read("get", call)]

    async def why(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[WhyFacts | None]":
        return await why(self._store, check_why(ids), now)

    async def counts(self, *, window: Span = WINDOW, now: Instant | None = None) -> "list[QueueCounts]":
        first, last, names, tally, oldest, rows, position = await self._read(
            "counts", ScriptCall(back=minutes_back(window), heads=HEADS_LIMIT), now
        )
        ended: dict[bytes, dict[str, int]] = {}
        async for name, _, kind, count in self._ended(rows, position, first=first, last=last, whole=True):
            _add(ended.setdefault(name.rpartition(b"/")[0], {}), kind, count)
        states = dict(zip(tally[::2], map(int, tally[1::2]), strict=True))
        heads = dict(zip(names, oldest, strict=True))
        return [_counts(name, states, ended.get(name, {}), heads[name]) for name in sorted(names)]

    async def series(
        self, *, since: Instant, until: Instant, step: Span, queue: str | None = None
    ) -> "list[SeriesPoint]":
        series = series_span(since, until, step, queue)
        first = series.first
        span = {"first": first, "last": until, "whole": step % HOUR == 0, "queue": queue}
        sums: dict[Instant, dict[str, int]] = {}
        async for _, at, kind, count in self._ended([], 0, **span):
            _add(sums.setdefault(at - (at - first) % step, {}), kind, count)
        return series.points({at: Finished(**counts) for at, counts in sums.items()})

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
        bounds = {"first": span.first, "last": span.until, "queue": queue}
        seen: set[tuple[bytes, int, bytes]] = set()
        position = 0
        while position >= 0:
            call = ScriptCall(position=position, of_tasks=span.by_task, task=task, **bounds)
            rows, position = await self._read("stats_read", call)
            for name, at, what, packed in rows:
                if (name, at, what) not in seen:
                    seen.add((name, at, what))
                    _add_stats(span, name.decode(), at, what.decode(), packed)
        if not span.by_task:
            whole = span.step % HOUR == 0 and span.first % HOUR == 0
            async for name, at, kind, count in self._ended([], 0, whole=whole, **bounds):
                of = name.rpartition(b"/")[0].decode()
                span.add_finished(of, at, Finished(**{kind.decode(): count}))
        return span.series()

    async def _ended(self, rows: Rows, position: int, **span: Any) -> AsyncIterator[Sequence[Any]]:
        """What ended in a span, in parts, so that no client waits long for the server."""
        seen: set[tuple[bytes, int, bytes]] = set()
        while True:
            for row in rows:
                name, at, kind, _ = row
                if (name, at, kind) not in seen:  # a name that came meanwhile moves the others on
                    seen.add((name, at, kind))
                    yield row
            if position < 0:
                return
            rows, position = await self._read("minutes", ScriptCall(position=position, **span))

    async def log(self, job: JobId, *, after: int = 0, limit: int = 1_000) -> "list[StoredLine]":
        check_number(after, "the number of lines to skip")
        check_limit(limit)
        call = ScriptCall(after=after, limit=limit)
        call.add(check_id(job))
        rows = await self._read("log", call)
        return [
            StoredLine(f, number, at, level.decode(), line.decode()) for f, number, at, level, line in rows
        ]

    async def checkpoints(self, job: JobId) -> "list[Checkpoint]":
        call = ScriptCall()
        call.add(check_id(job))
        rows = sorted(await self._read("checkpoints", call))
        return [Checkpoint(name=name.decode(), value=value) for _, name, value in rows]

    async def audit(self, *, before: int | None = None, limit: int = 100) -> "list[AuditEntry]":
        if before is not None:
            check_number(before, "the number of an entry")
        check_limit(limit)
        return [
            AuditEntry(
                number=number, at=at, by=by.decode(), action=action.decode(), target=target.decode(),
                detail=detail.decode(),
            )
            for number, at, by, action, target, detail in await self._read(
                "audit", ScriptCall(before=before, limit=limit)
            )
        ]  # fmt: skip

    async def storage(self) -> Storage:
        rows, rolled_back, policy, file_kept = await self._read("storage", ScriptCall())
        parts = [Part(name=name.decode(), bytes=size, rows=entries) for name, size, entries in rows]
        parts.sort(key=lambda part: (-part.bytes, part.name))
        return Storage(
            bytes=sum(part.bytes for part in parts),
            parts=parts,
            rolled_back=None if rolled_back < 0 else rolled_back,
            evicts=f"maxmemory-policy {policy.decode()}" if evicts(policy.decode()) else "",
            saved=file_kept != 0,
        )

    async def list(self, only: JobFilter, *, cursor: str | None = None, limit: int = 100) -> Page:
        check_listing(only, limit)
        return await page(self._store, only, read_cursor(only, cursor), limit)

    async def dead_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> GroupPage:
        walk = group_walk(queue, task, cursor, limit)
        after = walk.after
        call = ScriptCall(
            queue=queue,
            task=task,
            after=None if after is None else (after.queue, f"{after.task}\0{after.fingerprint}"),
            size=limit + 1,
        )
        rows = await self._read("groups", call)
        return walk.page([group_of(row) for row in rows[:limit]], more=len(rows) > limit)

    async def _read(self, name: str, call: ScriptCall, now: Instant | None = None) -> Any:
        return await self._store.run(self._store.reads, name, call, now)


def _add_stats(span: StatsSpan, queue: str, at: Instant, what: str, packed: bytes) -> None:
    """A row of `stats.lua`."""
    if what == "s" and not span.by_task:
        stock, arrived, oldest = _decode(packed)
        known = (None if number < 0 else number for number in (arrived, oldest))
        span.add_sample(queue, at, stock, *known)
    else:
        span.add_cells(queue, what, at, _decode(packed))


def _add(sums: dict[str, int], kind: bytes, count: int) -> None:
    sums[kind.decode()] = sums.get(kind.decode(), 0) + count


def _counts(queue: bytes, tally: dict[bytes, int], ended: dict[str, int], oldest: int) -> QueueCounts:
    states = {state.value: tally.get(b"%b/%d" % (queue, n), 0) for n, state in enumerate(STATES)}
    return QueueCounts(
        queue=queue.decode(),
        window=Finished(**ended),
        oldest_ready_at=None if oldest < 0 else oldest,
        **states,
    )
