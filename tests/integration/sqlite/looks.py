"""Looks at a database file past the engine, on a plain connection."""

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
    """The file is whole, the counts are those of the rows, and no ready job stands outside of a lane."""
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    recount = db.execute("SELECT queue, state, count(*) FROM job WHERE form < 2 GROUP BY queue, state")
    assert set(db.execute("SELECT queue, state, count FROM tally WHERE count <> 0")) == set(recount)
    stray = """SELECT count(*) FROM job WHERE state = 2 AND NOT EXISTS (
        SELECT 1 FROM lane WHERE lane.queue = job.queue AND lane.priority = job.priority
            AND lane.suspect = job.suspect AND lane.lane = job.lane)"""
    assert db.execute(stray).fetchone() == (0,)


def beside(path: Path, suffix: str) -> Path:
    """One of the `FILES` of a database."""
    return path.with_name(path.name + suffix)
