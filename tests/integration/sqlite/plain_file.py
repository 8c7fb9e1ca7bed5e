"""Reads a database file past the engine, on a plain connection."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

FILES = ("", "-wal", "-shm")
"""What SQLite keeps beside one another."""

Contents = dict[str, list[tuple[Any, ...]]]


def file_url(path: Path, **options: object) -> str:
    """The engine's URL of a file; without fsync, because here processes die and not machines."""
    query = "&".join(f"{name}={value}" for name, value in {"durability": "off", **options}.items())
    return f"sqlite:///{path}?{query}"


@contextmanager
def plain(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that knows nothing of the engine, in autocommit mode."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def contents(db: sqlite3.Connection) -> Contents:
    """Every row of every table."""
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: sorted(db.execute(f'SELECT * FROM "{table}"'), key=repr) for table in tables}


def is_sound(db: sqlite3.Connection) -> None:
    """The file is whole, the counts are those of the rows, no ready job stands outside of a lane, and every
    job stands in the order of its state and in no other."""
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    recount = db.execute("SELECT queue, state, count(*) FROM job_now WHERE form < 2 GROUP BY queue, state")
    assert set(db.execute("SELECT queue, state, count FROM tally WHERE count <> 0")) == set(recount)
    stray = """SELECT count(*) FROM job_now AS job WHERE state = 2 AND NOT EXISTS (
        SELECT 1 FROM lane WHERE lane.queue = job.queue AND lane.priority = job.priority
            AND lane.kind = job.suspect + 2 * (instr(job.lane, char(30)) > 0) AND lane.lane = job.lane
            AND ifnull(lane.aside, '') = substr(job.lane, 1, max(0, instr(job.lane, char(30)) - 1)))"""
    assert db.execute(stray).fetchone() == (0,)
    for text, jobs in _STANDING.items():
        assert sorted(db.execute(text)) == sorted(db.execute(jobs)), text


_READY = """WITH RECURSIVE each (queue, priority, kind, lane, at, last, ahead) AS (
    SELECT queue, priority, kind, lane, first, last, ahead FROM ready
    UNION ALL SELECT queue, priority, kind, lane, at + 1, last, ahead FROM each WHERE at < last
) SELECT queue, priority, kind, lane, at, at - ahead FROM each"""
_RUNNING = """WITH RECURSIVE each (queue, at, last, ahead) AS (
    SELECT queue, first, last, ahead FROM run
    UNION ALL SELECT queue, at + 1, last, ahead FROM each WHERE at < last
) SELECT queue, at, at + ahead FROM each"""
_ENDED = """WITH RECURSIVE each (queue, state, ended_at, at, last) AS (
    SELECT queue, state, ended_at, first, last FROM ended
    UNION ALL SELECT queue, state, ended_at, at + 1, last FROM each WHERE at < last
) SELECT queue, state, ended_at, at FROM each"""
_STANDING = {
    "SELECT queue, pk FROM blocked": "SELECT queue, pk FROM job_now WHERE state = 0",
    "SELECT queue, due_at, seq, pk FROM due": "SELECT queue, due_at, seq, pk FROM job_now WHERE state = 1",
    _READY: "SELECT queue, priority, suspect + 2 * (instr(lane, char(30)) > 0), lane, seq, pk FROM job_now "
    "WHERE state = 2",
    _RUNNING: "SELECT queue, pk, fence FROM job_now WHERE state = 3",
    _ENDED: "SELECT queue, state, ended_at, pk FROM job_now WHERE state > 3 AND form < 2",
    "SELECT queue, task, ended_at, pk FROM dead":
        "SELECT queue, task, ended_at, pk FROM job_now WHERE state = 5 AND form < 2",
    "SELECT ended_at, pk FROM grave": "SELECT ended_at, pk FROM job_now WHERE form = 2",
    "SELECT expires_at, pk FROM expiring":
        "SELECT expires_at, pk FROM job_now WHERE state < 3 AND expires_at IS NOT NULL",
    "SELECT pk FROM outcome": "SELECT pk FROM job_now WHERE state > 3",
    "SELECT pk FROM more EXCEPT SELECT pk FROM job": "SELECT 1 WHERE 0",
}  # fmt: skip
"""What a table of positions holds, and which jobs that must be. Ranges are counted out."""


def beside(path: Path, suffix: str) -> Path:
    """One of the `FILES` of a database."""
    return path.with_name(path.name + suffix)
