"""Pages of jobs, by the indexes that claims and retention already need.

`engine.shared.paging` has the walk over (state, queue), and the cursor. Task, key, tag and text are tried on
each job on the way, within a budget.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from tidemill.engine.shared.paging import Cursor, CursorKey, PageBuilder, chunk_size, positions_after
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.read.rows import COLUMNS, LISTED, job_of
from tidemill.model.jobs.job import JobState
from tidemill.model.view import JobFilter, Page

SQL = load_statements("tidemill.engines.postgres", "inspect")

CHUNK = 1_000
"""The most rows that are read at once."""


class PostgresWalk(NamedTuple):
    """How jobs of one state in one queue are walked. $1 is the queue."""

    where: str
    key: tuple[str, ...]
    types: tuple[str, ...]
    descending: bool = False


_ENDED = ("ended_at", "born"), ("bigint", "bigint"), True
_WALKS = {
    JobState.BLOCKED: PostgresWalk("state = 0", ("born",), ("bigint",)),
    JobState.SCHEDULED: PostgresWalk("state = 1", ("due_at", "seq"), ("bigint", "bigint")),
    JobState.READY: PostgresWalk(
        "state = 2", ("priority", "suspect", "lane", "seq"), ("smallint", "boolean", "text", "bigint")
    ),
    JobState.RUNNING: PostgresWalk("token IS NOT NULL", ("born",), ("bigint",)),
    JobState.COMPLETED: PostgresWalk("state >= 4 AND state = 4 AND form < 2", *_ENDED),
    JobState.DEAD: PostgresWalk("state >= 4 AND state = 5 AND form < 2", *_ENDED),
    JobState.CANCELLED: PostgresWalk("state >= 4 AND state = 6 AND form < 2", *_ENDED),
}
_SELECT = f"SELECT {LISTED}"


async def page(
    connection: "Connection[Any]", sql: Callable[[str], str], only: JobFilter, at: Cursor | None, limit: int
) -> Page:
    """The next jobs of a listing."""
    built = PageBuilder(only, at, limit)
    async for cursor, row, body in _walk(connection, sql, only, at, chunk_size(only, limit, CHUNK)):
        if built.full:
            return built.page(more=True)
        built.scan(cursor, job_of(row), body)
    return built.page(more=False)


async def _walk(
    connection: "Connection[Any]", sql: Callable[[str], str], only: JobFilter, at: Cursor | None, size: int
) -> AsyncIterator[tuple[Cursor, Row, bytes]]:
    queues = [name for (name,) in await connection.fetch(sql(SQL.queues))]
    for state, name, after in positions_after(only, at, queues):
        async for found in _in_queue(connection, sql, only, state, name, after, size):
            yield found


async def _in_queue(
    connection: "Connection[Any]",
    sql: Callable[[str], str],
    only: JobFilter,
    state: JobState,
    queue: str,
    after: CursorKey | None,
    size: int,
) -> AsyncIterator[tuple[Cursor, Row, bytes]]:
    walk = _WALKS[state]
    where = f"{walk.where} AND queue = $1"
    fixed: list[object] = [queue]
    if state is JobState.DEAD and only.task is not None:  # asked for often, and few among many: its own index
        where, fixed = where.replace("state >= 4 AND ", "") + " AND task = $2", [queue, only.task]
    body = "NULL::bytea" if only.text is None else "body"
    key = ", ".join(walk.key)
    order = ", ".join(column + (" DESC" if walk.descending else "") for column in walk.key)
    while True:
        condition, parameters = where, list(fixed)
        if after is not None:
            marks = ", ".join(f"${len(fixed) + n}::{name}" for n, name in enumerate(walk.types, 1))
            condition += f" AND ({key}) {'<' if walk.descending else '>'} ({marks})"
            parameters += [
                bool(part) if name == "boolean" else part
                for part, name in zip(after, walk.types, strict=True)
            ]
        statement = f"{_SELECT}, {body} FROM {{schema}}.shown WHERE {condition} ORDER BY {order} LIMIT {size}"
        rows = await connection.fetch(sql(statement), *parameters)
        for row in rows:
            yield Cursor(state, queue, _key(walk, row)), row, row[len(COLUMNS)] or b""
        if len(rows) < size:
            return
        after = _key(walk, rows[-1])


def _key(walk: PostgresWalk, row: Row) -> CursorKey:
    """Numbers and texts alone: a truth is 0 or 1, as in every store's cursors."""
    found = [row[COLUMNS.index(column)] for column in walk.key]
    return [int(part) if isinstance(part, bool) else part for part in found]
