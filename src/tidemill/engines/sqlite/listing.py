"""Pages of jobs, along the orders that claims and retention already need.

A listing is a walk over (state, queue) in a fixed order, and within each along one of those. The
cursor holds the place in the walk and the key of the last job looked at, so a page costs the same
however deep it lies. Task, key, tag and text are tried on each job on the way, within a budget.
"""

import base64
import binascii
from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

import msgspec

from tidemill.engines.sqlite.facts import ORDERS
from tidemill.engines.sqlite.rows import LISTED, job_of
from tidemill.engines.sqlite.step import CODE
from tidemill.model.errors import BadInput
from tidemill.model.job import Job, JobState
from tidemill.model.view import SCAN_LIMIT, JobFilter, Page, matches, states_of


class _Walk(NamedTuple):
    """How jobs of one state in one queue are walked: along an order, each job known by its key.

    Where the order has ranges, what comes after a key is named twice: by the range, which SQLite finds
    in the order, and by the job, since the page may have ended in the middle of one."""

    order: str
    where: str
    key: tuple[str, ...]
    sort: str
    after: str


_WALKS = {
    JobState.BLOCKED: _Walk(
        "blocked", "blocked.queue = :queue", ("blocked.pk",), "blocked.pk", "blocked.pk > :key0"
    ),
    JobState.SCHEDULED: _Walk(
        "due",
        "due.queue = :queue",
        ("due.due_at", "due.seq"),
        "due.due_at, due.seq",
        "(due.due_at, due.seq) > (:key0, :key1)",
    ),
    JobState.READY: _Walk(
        "ready",
        "ready.queue = :queue",
        ("ready.priority", "ready.suspect", "ready.lane", "job_now.seq"),
        "ready.priority, ready.suspect, ready.lane, ready.last, job_now.pk",
        "(ready.priority, ready.suspect, ready.lane, ready.last) > (:key0, :key1, :key2, :key3)"
        " AND (ready.priority, ready.suspect, ready.lane, job_now.seq) > (:key0, :key1, :key2, :key3)",
    ),
    JobState.RUNNING: _Walk(
        "run",
        "run.queue = :queue",
        ("job_now.pk",),
        "run.last, job_now.pk",
        "run.last > :key0 AND job_now.pk > :key0",
    ),
    **{
        state: _Walk(
            "ended",
            f"ended.queue = :queue AND ended.state = {CODE[state]}",
            ("ended.ended_at", "job_now.pk"),
            "ended.ended_at DESC, ended.last DESC, job_now.pk DESC",
            "ended.ended_at <= :key0 AND (ended.ended_at, job_now.pk) < (:key0, :key1)",
        )
        for state in (JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED)
    },
}
_DEAD_OF_TASK = _Walk(
    "dead",
    "dead.queue = :queue AND dead.task = :task",
    ("dead.ended_at", "dead.pk"),
    "dead.ended_at DESC, dead.pk DESC",
    "(dead.ended_at, dead.pk) < (:key0, :key1)",
)
"""Dead letters of one task are asked for often, and may be few among many."""


class _Cursor(msgspec.Struct, array_like=True):
    """Where a page ended."""

    state: JobState
    queue: str
    key: list[int | str]


def page(db: Connection, only: JobFilter, cursor: str | None, limit: int) -> Page:
    """The next jobs of a listing."""
    at = None if cursor is None else _decode(cursor)
    if at is not None and at.state not in states_of(only):
        raise BadInput("this cursor belongs to a listing of other states; begin again without one")
    jobs: list[Job] = []
    scanned, last = 0, at
    for place, row, body in _walk(db, only, at):
        if len(jobs) >= limit or scanned >= SCAN_LIMIT:
            return Page(jobs=jobs, cursor=None if last is None else _encode(last), scanned=scanned)
        scanned += 1
        last = place
        job = job_of(row)
        if matches(only, job, body):
            jobs.append(job)
    return Page(jobs=jobs, cursor=None, scanned=scanned)


def _walk(
    db: Connection, only: JobFilter, at: _Cursor | None
) -> Iterator[tuple[_Cursor, tuple[object, ...], bytes]]:
    queues = db.execute("SELECT pk, name FROM queue ORDER BY name").fetchall()
    states = states_of(only)
    for state in states:
        if at is not None and states.index(state) < states.index(at.state):
            continue
        for pk, name in queues:
            if only.queue not in (None, name):
                continue
            same = at is not None and at.state == state
            if same and at is not None and name < at.queue:
                continue
            after = at.key if same and at is not None and at.queue == name else None
            yield from _in_queue(db, only, state, pk, name, after)


def _in_queue(
    db: Connection, only: JobFilter, state: JobState, queue: int, name: str, after: list[int | str] | None
) -> Iterator[tuple[_Cursor, tuple[object, ...], bytes]]:
    walk = _WALKS[state]
    parameters: dict[str, int | str] = {"queue": queue}
    if state is JobState.DEAD and only.task is not None:
        walk = _DEAD_OF_TASK
        parameters["task"] = only.task
    where, columns = walk.where, len(walk.key)
    if after is not None:
        if len(after) != columns:
            raise BadInput("this cursor belongs to another listing; begin again without one")
        where += f" AND {walk.after}"
        parameters |= {f"key{number}": value for number, value in enumerate(after)}
    body = "NULL" if only.text is None else "job_now.body"
    text = (
        f"{LISTED}, {body}, {', '.join(walk.key)} FROM {ORDERS[walk.order]} "
        f"WHERE {where} ORDER BY {walk.sort}"
    )
    for row in db.execute(text, parameters):
        yield _Cursor(state, name, list(row[-columns:])), row[: -columns - 1], row[-columns - 1] or b""


def _encode(cursor: _Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()


def _decode(text: str) -> _Cursor:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Cursor)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise BadInput(f"{text!r} is not a cursor that a listing gave; begin again without one") from None
