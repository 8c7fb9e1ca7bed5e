"""Every statement can be prepared, and those that run often find their rows by an index."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.statements import Statements, load_statements
from penstock.engines import sqlite
from penstock.engines.sqlite import choice, facts
from penstock.engines.sqlite.listing import page
from penstock.engines.sqlite.place import place_of
from penstock.engines.sqlite.schema import prepare
from penstock.engines.sqlite.step import CODE
from penstock.model.job import JobState
from penstock.model.view import JobFilter

PACKAGE = sqlite.__name__
NAMES = sorted(Path(file.name).stem for file in files(sqlite).joinpath("sql").iterdir())


def statements() -> Iterator[tuple[str, str]]:
    for name in NAMES:
        for statement, text in load_statements(PACKAGE, name).items():
            yield f"{name}.{statement}", text


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """An empty database of ours."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        prepare(connection, place_of("sqlite://"), namespace="penstock", migrate=True)
        yield connection


class Anything(dict[str, Any]):
    """A value for every named parameter."""

    def __missing__(self, name: str) -> None:
        return None


def plan(db: sqlite3.Connection, text: str) -> str:
    """How SQLite would run it, a line for each step."""
    parameters: Any = Anything() if ":" in text else (None,) * 99
    if not isinstance(parameters, Anything):
        numbered = [int(part) for part in _numbers(text)]
        parameters = (None,) * (max(numbered) if numbered else text.count("?"))
    return "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", parameters))


def _numbers(text: str) -> Iterator[str]:
    for part in text.split("?")[1:]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            yield digits


def sql(name: str) -> Statements:
    return load_statements(PACKAGE, name)


@pytest.mark.parametrize(("name", "text"), list(statements()), ids=[name for name, _ in statements()])
def test_every_statement_can_be_prepared(db: sqlite3.Connection, name: str, text: str) -> None:
    plan(db, text)


def test_a_statement_that_cannot_be_prepared_is_found(db: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        plan(db, "UPDATE job SET colour = ? WHERE pk = ?")


MAY_SCAN = {"inspect.queues", "inspect.tallies", "queues.list", "queues.tasks", "schedules.list"}
"""These answer whole tables, all of them small."""


@pytest.mark.parametrize(("name", "text"), list(statements()), ids=[name for name, _ in statements()])
def test_no_statement_walks_through_all_jobs(db: sqlite3.Connection, name: str, text: str) -> None:
    lines = plan(db, text).splitlines()
    for table in ("job", "log", "failure", "checkpoint", "wait", "lane", "start", "finished", "claimant"):
        assert f"SCAN {table}" not in lines, f"{name} reads all of {table}"


CLAIM = f"{choice._IN_LANE}"
UNDER = f"{facts.SELECT} WHERE state = 3 AND claimant = ? ORDER BY fence LIMIT ?"
BY_AGE = (
    f"{facts.SELECT} WHERE state >= 4 AND form < 2 AND queue = ? AND state = 4 AND ended_at <= ? "
    "ORDER BY ended_at, pk LIMIT ?"
)
BY_COUNT = (
    f"{facts.SELECT} WHERE state >= 4 AND form < 2 AND queue = ? AND state = 5 ORDER BY ended_at, pk LIMIT ?"
)
TOMBSTONES = f"{facts.SELECT} WHERE form = 2 AND ended_at <= ? ORDER BY ended_at LIMIT ?"
EXPIRED = (
    f"{facts.SELECT} WHERE expires_at IS NOT NULL AND state <= 2 AND expires_at <= ? "
    "ORDER BY expires_at LIMIT ?"
)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        (CLAIM, "job_ready (queue=? AND priority=? AND suspect=? AND lane=?)"),
        (sql("promote").due, "job_due (queue=? AND due_at<?)"),
        (sql("promote").next_due, "job_due (queue=?)"),
        (
            sql("lanes").open_lanes,
            "lane_open (queue=? AND priority=? AND suspect=? AND task=? AND lane>? AND lane<?)",
        ),
        (sql("lanes").next_priority, "lane_open (queue=? AND priority>?)"),
        (sql("lanes").stale_jobs, "job_ready (queue=? AND priority=? AND suspect=? AND lane=? AND seq>?)"),
        (sql("gates").held_by_task, "job_held_task (queue=? AND task=?)"),
        (sql("gates").held_by_key, "job_held_key (queue=? AND key=?)"),
        (sql("gates").wake, "parked_wake (queue=? AND wake_at<?)"),
        (BY_AGE, "job_ended (queue=? AND state=? AND ended_at<?)"),
        (BY_COUNT, "job_ended (queue=? AND state=?)"),
        (TOMBSTONES, "job_tombstone (ended_at<?)"),
        (EXPIRED, "job_expires (expires_at<?)"),
    ],
)
def test_in_the_order_of_its_index(db: sqlite3.Connection, text: str, index: str) -> None:
    """Nothing is sorted, so that the first row costs no more than one."""
    found = plan(db, text)
    assert index in found
    assert "TEMP B-TREE" not in found


def test_what_a_claimant_holds_is_found_by_claimant(db: sqlite3.Connection) -> None:
    assert "job_running (claimant=?)" in plan(db, UNDER)


@pytest.mark.parametrize("name", ["complete", "complete_small", "complete_plain", "end_attempt"])
def test_outcomes_are_written_by_primary_key(db: sqlite3.Connection, name: str) -> None:
    assert plan(db, getattr(sql("settle"), name)) == "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"


def test_jobs_are_taken_by_primary_key(db: sqlite3.Connection) -> None:
    assert plan(db, sql("claim").take) == "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"


WALKS = {
    JobState.BLOCKED: "job_blocked",
    JobState.SCHEDULED: "job_due",
    JobState.READY: "job_ready",
    JobState.COMPLETED: "job_ended",
    JobState.DEAD: "job_ended",
    JobState.CANCELLED: "job_ended",
}


@pytest.mark.parametrize("state", WALKS)
def test_listings_walk_along_an_index(db: sqlite3.Connection, state: JobState) -> None:
    """The statements as they are run, caught on the way, for a first page and for a later one."""
    db.execute("INSERT INTO queue (name, options, created_at) VALUES ('q', x'7b7d', 0)")
    insert = """INSERT INTO job (id, queue, priority, seq, state, task, key, max_attempts, created_at, due_at,
        ready_at, ended_at, codec) VALUES (?, 1, 5, ?, ?, 't', '', 5, 0, ?, 0, ?, 1)"""
    db.executemany(insert, [(bytes([n] * 16), n, CODE[state], n, n) for n in range(9)])
    caught: list[str] = []
    db.set_trace_callback(caught.append)
    only = JobFilter(states=(state,))
    first = page(db, only, None, 4)
    second = page(db, only, first.cursor, 4)
    db.set_trace_callback(None)
    assert [len(each.jobs) for each in (first, second)] == [4, 4]
    walks = [text for text in caught if "ORDER BY" in text and "FROM job" in text]
    assert len(walks) == 2
    for text in walks:
        found = plan(db, text)
        assert f"USING INDEX {WALKS[state]} (queue=?" in found
        assert "TEMP B-TREE" not in found
