"""Pages of jobs, by the indexes that claims and retention already need.

`engine.shared.paging` has the walk over (state, queue), and the cursor. What no index answers is tried on
each job on the way, within a budget.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from tidemill.engine.shared.paging import Cursor, CursorKey, PageBuilder, chunk_size, positions_after
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.read.rows import COLUMNS, LISTED, job_of
from tidemill.model.jobs.fingerprint import read_group
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
    moment: str | None = None
    """The column of `moment_of`, if the order is by it."""


_ENDED = ("ended_at", "born"), ("bigint", "bigint"), True, "ended_at"
_WALKS = {
    JobState.BLOCKED: PostgresWalk("state = 0", ("born",), ("bigint",)),
    JobState.SCHEDULED: PostgresWalk("state = 1", ("due_at", "seq"), ("bigint", "bigint"), moment="due_at"),
    JobState.READY: PostgresWalk(
        "state = 2", ("priority", "suspect", "lane", "seq"), ("smallint", "boolean", "text", "bigint")
    ),
    JobState.RUNNING: PostgresWalk("token IS NOT NULL", ("born",), ("bigint",)),
    JobState.COMPLETED: PostgresWalk("state >= 4 AND state = 4 AND form < 2", *_ENDED),
    JobState.DEAD: PostgresWalk("state >= 4 AND state = 5 AND form < 2", *_ENDED),
    JobState.CANCELLED: PostgresWalk("state >= 4 AND state = 6 AND form < 2", *_ENDED),
}
_SELECT = f"SELECT {LISTED}"
_OF_JOBS = "{schema}.shown WHERE {where}"
_OF_DEAD = (
    "(SELECT job FROM {schema}.dead WHERE {where} ORDER BY {order} LIMIT {size}) AS dead "
    "JOIN {schema}.shown ON shown.id = ANY (ARRAY[dead.job])"
)
"""Dead letters of a task or a group, by the orders of their own."""


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
    where, fixed, source = _condition(walk, only, state, queue)
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
        found = source.format(schema="{schema}", where=condition, order=order, size=size)
        statement = f"{_SELECT}, {body} FROM {found} ORDER BY {order} LIMIT {size}"
        rows = await connection.fetch(sql(statement), *parameters)
        for row in rows:
            yield Cursor(state, queue, _key(walk, row)), row, row[len(COLUMNS)] or b""
        if len(rows) < size:
            return
        after = _key(walk, rows[-1])


def _condition(
    walk: PostgresWalk, only: JobFilter, state: JobState, queue: str
) -> tuple[str, list[object], str]:
    """Of the walk through one queue: the condition with its parameters, and what it is about."""
    where, source = f"{walk.where} AND queue = $1", _OF_JOBS
    fixed: list[object] = [queue]

    def also(condition: str, value: object) -> None:
        nonlocal where
        fixed.append(value)
        where += f" AND {condition} ${len(fixed)}"

    if only.group is not None:
        group = read_group(only.group)
        where, source = "queue = $1", _OF_DEAD
        also("task =", group.task)
        also("fingerprint =", group.fingerprint)
    elif state is JobState.DEAD and only.task is not None:  # asked for often, and few among many
        where, source = "queue = $1", _OF_DEAD
        also("task =", only.task)
    if walk.moment is not None and only.since is not None:
        also(f"{walk.moment} >=", only.since)
    if walk.moment is not None and only.until is not None:
        also(f"{walk.moment} <", only.until)
    if state is JobState.READY and only.priority is not None:
        also("priority =", only.priority)
    return where, fixed, source


def _key(walk: PostgresWalk, row: Row) -> CursorKey:
    """Numbers and texts alone: a truth is 0 or 1, as in every store's cursors."""
    found = [row[COLUMNS.index(column)] for column in walk.key]
    return [int(part) if isinstance(part, bool) else part for part in found]
