"""Pages of jobs, along the orders that claims and retention already need.

`engine.shared.paging` has the walk over (state, queue), and the cursor. What no order answers is tried on
each job on the way, within a budget.
"""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from tidemill.engine.shared.paging import Cursor, CursorKey, PageBuilder, positions_after
from tidemill.engines.sqlite.jobs.facts import ORDERS
from tidemill.engines.sqlite.jobs.step import CODE
from tidemill.engines.sqlite.read.rows import LISTED, job_of
from tidemill.model.jobs.fingerprint import read_group
from tidemill.model.jobs.job import JobState
from tidemill.model.view import JobFilter, Page


class SqliteWalk(NamedTuple):
    """How jobs of one state in one queue are walked: along an order, each job known by its key.

    Where the order has ranges, what comes after a key is named twice: by the range, which SQLite finds
    in the order, and by the job, since the page may have ended in the middle of one."""

    order: str
    where: str
    key: tuple[str, ...]
    sort: str
    after: str
    moment: str | None = None
    """The column of `moment_of`, if the order is by it."""


_WALKS = {
    JobState.BLOCKED: SqliteWalk(
        "blocked", "blocked.queue = :queue", ("blocked.pk",), "blocked.pk", "blocked.pk > :key0"
    ),
    JobState.SCHEDULED: SqliteWalk(
        "due",
        "due.queue = :queue",
        ("due.due_at", "due.seq"),
        "due.due_at, due.seq",
        "(due.due_at, due.seq) > (:key0, :key1)",
        "due.due_at",
    ),
    JobState.READY: SqliteWalk(
        "ready",
        "ready.queue = :queue",
        ("ready.priority", "ready.kind", "ready.lane", "job_now.seq"),
        "ready.priority, ready.kind, ready.lane, ready.last, job_now.pk",
        "(ready.priority, ready.kind, ready.lane, ready.last) > (:key0, :key1, :key2, :key3)"
        " AND (ready.priority, ready.kind, ready.lane, job_now.seq) > (:key0, :key1, :key2, :key3)",
    ),
    JobState.RUNNING: SqliteWalk(
        "run",
        "run.queue = :queue",
        ("job_now.pk",),
        "run.last, job_now.pk",
        "run.last > :key0 AND job_now.pk > :key0",
    ),
    **{
        state: SqliteWalk(
            "ended",
            f"ended.queue = :queue AND ended.state = {CODE[state]}",
            ("ended.ended_at", "job_now.pk"),
            "ended.ended_at DESC, ended.last DESC, job_now.pk DESC",
            "ended.ended_at <= :key0 AND (ended.ended_at, job_now.pk) < (:key0, :key1)",
            "ended.ended_at",
        )
        for state in (JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED)
    },
}
_DEAD_OF_TASK = SqliteWalk(
    "dead",
    "dead.queue = :queue AND dead.task = :task",
    ("dead.ended_at", "dead.pk"),
    "dead.ended_at DESC, dead.pk DESC",
    "(dead.ended_at, dead.pk) < (:key0, :key1)",
    "dead.ended_at",
)
"""The dead jobs of one task are listed often, and may be few among many."""
_DEAD_OF_GROUP = _DEAD_OF_TASK._replace(
    where="dead.queue = :queue AND dead.task = :task AND dead.fingerprint = :fingerprint"
)


def page(db: Connection, only: JobFilter, at: Cursor | None, limit: int) -> Page:
    """The next jobs of a listing."""
    built = PageBuilder(only, at, limit)
    for cursor, row, body in _walk(db, only, at):
        if built.full:
            return built.page(more=True)
        built.scan(cursor, job_of(row), body)
    return built.page(more=False)


def _walk(
    db: Connection, only: JobFilter, at: Cursor | None
) -> Iterator[tuple[Cursor, tuple[object, ...], bytes]]:
    queues = {name: pk for pk, name in db.execute("SELECT pk, name FROM queue ORDER BY name").fetchall()}
    for state, name, after in positions_after(only, at, queues):
        yield from _in_queue(db, only, state, queues[name], name, after)


def _in_queue(
    db: Connection, only: JobFilter, state: JobState, queue: int, name: str, after: CursorKey | None
) -> Iterator[tuple[Cursor, tuple[object, ...], bytes]]:
    walk = _WALKS[state]
    parameters: dict[str, int | str | None] = {"queue": queue}
    if only.group is not None:
        walk = _DEAD_OF_GROUP
        parameters |= read_group(only.group)._asdict()
    elif state is JobState.DEAD and only.task is not None:
        walk = _DEAD_OF_TASK
        parameters["task"] = only.task
    where, columns = walk.where, len(walk.key)
    if walk.moment is not None:
        if only.since is not None:
            where += f" AND {walk.moment} >= :since"
        if only.until is not None:
            where += f" AND {walk.moment} < :until"
        parameters |= {"since": only.since, "until": only.until}
    if state is JobState.READY and only.priority is not None:
        where += " AND ready.priority = :priority"
        parameters["priority"] = only.priority
    if after is not None:
        where += f" AND {walk.after}"
        parameters |= {f"key{number}": value for number, value in enumerate(after)}
    body = "NULL" if only.text is None else "job_now.body"
    text = (
        f"{LISTED}, {body}, {', '.join(walk.key)} FROM {ORDERS[walk.order]} "
        f"WHERE {where} ORDER BY {walk.sort}"
    )
    for row in db.execute(text, parameters):
        yield Cursor(state, name, list(row[-columns:])), row[: -columns - 1], row[-columns - 1] or b""
