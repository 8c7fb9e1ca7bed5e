"""Every statement can be prepared, and those that run often find their rows by an index.

No statistics are ever gathered, so SQLite's plans depend on the schema alone, and an empty database shows
them. Statements that are put together in code are caught while they run.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.statements import load_statements
from penstock.engines import sqlite
from penstock.engines.sqlite import choice, facts
from penstock.engines.sqlite.catalogue import Catalogue
from penstock.engines.sqlite.listing import page
from penstock.engines.sqlite.place import place_of
from penstock.engines.sqlite.promote import promote
from penstock.engines.sqlite.prune import prune
from penstock.engines.sqlite.schema import prepare
from penstock.engines.sqlite.step import CODE, Step
from penstock.model.job import FINAL, JobState
from penstock.model.time import DAY
from penstock.model.view import JobFilter

PACKAGE = sqlite.__name__
STATEMENTS = {
    f"{source}.{name}": text
    for source in sorted(Path(file.name).stem for file in files(sqlite).joinpath("sql").iterdir())
    for name, text in load_statements(PACKAGE, source).items()
}
NOW = 100 * DAY


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A database of ours with one queue."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        prepare(connection, place_of("sqlite://"), namespace="penstock", migrate=True)
        options = b'{"keep_completed":{"age":9,"count":1},"keep_dead":{"age":9,"count":1}}'
        connection.execute("INSERT INTO queue (name, options, created_at) VALUES ('q', ?, 0)", (options,))
        yield connection


def add_jobs(db: sqlite3.Connection, state: JobState, count: int = 9) -> None:
    """Jobs in a state, as far as a listing or retention looks at them."""
    waits = int(state is JobState.BLOCKED)
    insert = f"""INSERT INTO job (id, queue, priority, seq, state, task, key, max_attempts, created_at,
        due_at, ready_at, ended_at, codec, waits_for)
        VALUES (?, 1, 5, ?, {CODE[state]}, 't', '', 5, 0, ?, 0, ?, 1, {waits})"""
    db.executemany(insert, [(bytes([CODE[state], n] * 8), n, n, n) for n in range(count)])
    db.execute("INSERT INTO tally VALUES (1, ?, ?)", (CODE[state], count))


def plan(db: sqlite3.Connection, text: str) -> str:
    """How SQLite would run it, a line for each step."""
    parameters: Any = dict.fromkeys(re.findall(r":(\w+)", text))
    if not parameters:
        numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
        parameters = (None,) * (max(numbered) if numbered else text.count("?"))
    return "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", parameters))


def caught(db: sqlite3.Connection, work: Callable[[], object]) -> list[str]:
    """The statements on jobs that something runs and that look for more than one, values filled in."""
    texts: list[str] = []
    db.set_trace_callback(texts.append)
    try:
        work()
    finally:
        db.set_trace_callback(None)
    return [text for text in texts if "FROM job" in text and "ORDER BY" in text]


def a_step(db: sqlite3.Connection) -> Step:
    catalogue = Catalogue(db)
    catalogue.refresh()
    return Step(db, catalogue, NOW)


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_can_be_prepared(db: sqlite3.Connection, name: str) -> None:
    plan(db, STATEMENTS[name])


def test_a_statement_that_cannot_be_prepared_is_found(db: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        plan(db, "UPDATE job SET colour = ? WHERE pk = ?")


LARGE = ("job", "log", "failure", "checkpoint", "wait", "lane", "start", "finished", "parked")
"""Tables that grow with what is stored. Members, claimants, queues, tasks and schedules are few."""
RUNNING_ONLY = "SCAN job USING INDEX job_running"


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_walks_through_a_large_table(db: sqlite3.Connection, name: str) -> None:
    steps = plan(db, STATEMENTS[name]).splitlines()
    walks = [step for step in steps for table in LARGE if step.split()[:2] == ["SCAN", table]]
    assert set(walks) <= ({RUNNING_ONLY} if name == "gates.gate_running" else set())


def test_such_a_walk_is_found(db: sqlite3.Connection) -> None:
    assert plan(db, "SELECT pk FROM job WHERE result = ?").splitlines() == ["SCAN job"]


@pytest.mark.parametrize(
    ("text", "index"),
    [
        (choice._IN_LANE, "job_ready (queue=? AND priority=? AND suspect=? AND lane=? AND seq>?)"),
        (STATEMENTS["promote.due"], "job_due (queue=? AND due_at<?)"),
        (STATEMENTS["promote.next_due"], "job_due (queue=?)"),
        (
            STATEMENTS["lanes.open_lanes"],
            "lane_open (queue=? AND priority=? AND suspect=? AND task=? AND lane>? AND lane<?)",
        ),
        (STATEMENTS["lanes.next_priority"], "lane_open (queue=? AND priority>?)"),
        (
            STATEMENTS["lanes.stale_jobs"],
            "job_ready (queue=? AND priority=? AND suspect=? AND lane=? AND seq>?)",
        ),
        (STATEMENTS["gates.held_by_task"], "job_held_task (queue=? AND task=?)"),
        (STATEMENTS["gates.held_by_key"], "job_held_key (queue=? AND key=?)"),
        (STATEMENTS["gates.wake"], "parked_wake (queue=? AND wake_at>? AND wake_at<?)"),
    ],
    ids=[
        "in lane",
        "due",
        "next due",
        "open lanes",
        "next priority",
        "stale jobs",
        "by task",
        "by key",
        "wake",
    ],
)
def test_in_the_order_of_its_index(db: sqlite3.Connection, text: str, index: str) -> None:
    """Nothing is sorted, so that the first row costs one row."""
    found = plan(db, text)
    assert index in found
    assert "TEMP B-TREE" not in found


def test_what_a_claimant_holds_is_found_by_claimant(db: sqlite3.Connection) -> None:
    (text,) = caught(db, lambda: facts.running_under(a_step(db), 1))
    assert "job_running (claimant=?)" in plan(db, text)


@pytest.mark.parametrize(
    "name",
    ["settle.complete", "settle.complete_small", "settle.complete_plain", "settle.end_attempt", "claim.take"],
)
def test_runs_are_written_by_primary_key(db: sqlite3.Connection, name: str) -> None:
    (step,) = plan(db, STATEMENTS[name]).splitlines()
    assert step.startswith("SEARCH job USING INTEGER PRIMARY KEY (rowid")


def test_retention_begins_with_the_oldest(db: sqlite3.Connection) -> None:
    for state in FINAL:
        add_jobs(db, state)
    young = a_step(db)
    young.now = 10  # nothing is old yet: what goes goes by count
    texts = caught(db, lambda: prune(young, 1)) + caught(db, lambda: prune(a_step(db), 1_000))
    plans = [plan(db, text) for text in texts if "ended_at" in text.partition("WHERE")[2]]
    assert len({text.partition("WHERE")[2].partition("ended_at <=")[1] for text in texts}) == 2, (
        "age and count"
    )
    assert all("job_ended (queue=? AND state=?" in found for found in plans)
    assert not [found for found in plans if "TEMP B-TREE" in found]


def test_tombstones_go_oldest_first(db: sqlite3.Connection) -> None:
    text = caught(db, lambda: prune(a_step(db), 1_000))[-1]
    assert "USING INDEX job_tombstone" in plan(db, text)
    assert "TEMP B-TREE" not in plan(db, text)


def test_what_expires_is_found_in_its_order(db: sqlite3.Connection) -> None:
    texts = caught(db, lambda: promote(a_step(db), 10))
    (found,) = [plan(db, text) for text in texts if "ORDER BY expires_at" in text]
    assert "USING INDEX job_expires" in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize(
    ("state", "index"),
    [
        (JobState.BLOCKED, "job_blocked (queue=?"),
        (JobState.SCHEDULED, "job_due (queue=?"),
        (JobState.READY, "job_ready (queue=?"),
        (JobState.RUNNING, "job_running"),
        (JobState.COMPLETED, "job_ended (queue=? AND state=?"),
        (JobState.DEAD, "job_ended (queue=? AND state=?"),
        (JobState.CANCELLED, "job_ended (queue=? AND state=?"),
    ],
)
def test_listings_walk_along_an_index(db: sqlite3.Connection, state: JobState, index: str) -> None:
    """The first page and a later one."""
    add_jobs(db, state)
    only = JobFilter(state=state)
    pages = [page(db, only, None, 4)]
    texts = caught(db, lambda: page(db, only, None, 4))
    texts += caught(db, lambda: pages.append(page(db, only, pages[0].cursor, 4)))
    assert [len(each.jobs) for each in pages] == [4, 4]
    assert len(texts) == 2
    for text in texts:
        assert index in plan(db, text)
        # only the running ones, which are as few as there are slots, are sorted
        assert ("TEMP B-TREE" in plan(db, text)) == (state is JobState.RUNNING)
