"""Pages of jobs, by the indexes that claims and retention already need.

A listing is a walk over (state, queue) in a fixed order, and within each by the key of an index. The cursor
holds the place in the walk and the key of the last job looked at, so a page costs the same however deep it
lies. Task, key, tag and text are tried on each job on the way, within a budget.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.line import Connection, Row
from tidemill.engines.postgres.rows import COLUMNS, LISTED, job_of
from tidemill.model.errors import BadInput
from tidemill.model.job import Job, JobState
from tidemill.model.view import SCAN_LIMIT, JobFilter, Page, matches, states_of

SQL = load_statements(__package__, "inspect")

CHUNK = 1_000
"""The most rows that are read at once."""


class _Walk(NamedTuple):
    """How jobs of one state in one queue are walked. $1 is the queue."""

    where: str
    key: tuple[str, ...]
    types: tuple[str, ...]
    descending: bool = False


_ENDED = ("ended_at", "born"), ("bigint", "bigint"), True
_WALKS = {
    JobState.BLOCKED: _Walk("state = 0", ("born",), ("bigint",)),
    JobState.SCHEDULED: _Walk("state = 1", ("due_at", "seq"), ("bigint", "bigint")),
    JobState.READY: _Walk(
        "state = 2", ("priority", "suspect", "lane", "seq"), ("smallint", "boolean", "text", "bigint")
    ),
    JobState.RUNNING: _Walk("token IS NOT NULL", ("born",), ("bigint",)),
    JobState.COMPLETED: _Walk("state >= 4 AND state = 4 AND form < 2", *_ENDED),
    JobState.DEAD: _Walk("state >= 4 AND state = 5 AND form < 2", *_ENDED),
    JobState.CANCELLED: _Walk("state >= 4 AND state = 6 AND form < 2", *_ENDED),
}
_SELECT = f"SELECT {LISTED}"
_TYPES: dict[str, type | tuple[type, ...]] = {"smallint": int, "bigint": int, "boolean": bool, "text": str}


class _Cursor(msgspec.Struct, array_like=True):
    """Where a page ended."""

    state: JobState
    queue: str
    key: list[int | bool | str]


def place_of(only: JobFilter, cursor: str | None) -> _Cursor | None:
    """The place that a cursor names, or `BadInput`."""
    if cursor is None:
        return None
    try:
        at = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=_Cursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise BadInput(f"{cursor!r} is not a cursor that a listing gave; begin again without one") from None
    if at.state not in states_of(only):
        raise BadInput("this cursor belongs to a listing of other states; begin again without one")
    types = _WALKS[at.state].types
    fits = len(at.key) == len(types) and all(
        type(part) is _TYPES[name] and (name != "smallint" or abs(part) < 1 << 15)  # type: ignore[arg-type]
        and (name != "bigint" or abs(part) < 1 << 63) and (name != "text" or "\0" not in part)  # type: ignore[arg-type, operator]
        for part, name in zip(at.key, types, strict=True)
    )  # fmt: skip
    if not fits or "\0" in at.queue:
        raise BadInput("this cursor belongs to another listing; begin again without one")
    return at


async def page(
    connection: "Connection[Any]", sql: Callable[[str], str], only: JobFilter, at: _Cursor | None, limit: int
) -> Page:
    """The next jobs of a listing."""
    jobs: list[Job] = []
    scanned, last = 0, at
    filtered = any(part is not None for part in (only.task, only.key, only.tag, only.text))
    size = CHUNK if filtered else min(CHUNK, limit + 1)
    async for place, row, body in _walk(connection, sql, only, at, size):
        if len(jobs) >= limit or scanned >= SCAN_LIMIT:
            return Page(jobs=jobs, cursor=None if last is None else _encode(last), scanned=scanned)
        scanned += 1
        last = place
        job = job_of(row)
        if matches(only, job, body):
            jobs.append(job)
    return Page(jobs=jobs, cursor=None, scanned=scanned)


async def _walk(
    connection: "Connection[Any]", sql: Callable[[str], str], only: JobFilter, at: _Cursor | None, size: int
) -> AsyncIterator[tuple[_Cursor, Row, bytes]]:
    queues = [name for (name,) in await connection.fetch(sql(SQL.queues))]
    states = states_of(only)
    for state in states:
        if at is not None and states.index(state) < states.index(at.state):
            continue
        for name in queues:
            if only.queue not in (None, name):
                continue
            here = at if at is not None and at.state == state else None
            if here is not None and name < here.queue:
                continue
            after = here.key if here is not None and here.queue == name else None
            async for place, row, body in _in_queue(connection, sql, only, state, name, after, size):
                yield place, row, body


async def _in_queue(
    connection: "Connection[Any]",
    sql: Callable[[str], str],
    only: JobFilter,
    state: JobState,
    queue: str,
    after: list[int | bool | str] | None,
    size: int,
) -> AsyncIterator[tuple[_Cursor, Row, bytes]]:
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
            parameters += after
        statement = f"{_SELECT}, {body} FROM {{schema}}.shown WHERE {condition} ORDER BY {order} LIMIT {size}"
        rows = await connection.fetch(sql(statement), *parameters)
        for row in rows:
            place = [row[COLUMNS.index(column)] for column in walk.key]
            yield _Cursor(state, queue, place), row, row[len(COLUMNS)] or b""
        if len(rows) < size:
            return
        after = [rows[-1][COLUMNS.index(column)] for column in walk.key]


def _encode(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()
