"""Every statement can be prepared, and those that run often find their rows by an index.

No statistics are ever gathered, so SQLite's plans depend on the schema alone, and an empty database shows
them. Statements that are put together in code are caught while they run.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tidemill.engine.shared.paging import read_cursor
from tidemill.engine.shared.statements import load_statements
from tidemill.engines import sqlite
from tidemill.engines.sqlite.claiming import ready_rows
from tidemill.engines.sqlite.cluster.catalogue import Catalogue
from tidemill.engines.sqlite.db.schema import prepare
from tidemill.engines.sqlite.jobs import facts
from tidemill.engines.sqlite.jobs.promote import promote
from tidemill.engines.sqlite.jobs.prune import prune
from tidemill.engines.sqlite.jobs.step import CODE, Step
from tidemill.engines.sqlite.read.listing import page
from tidemill.engines.sqlite.url import parse_url
from tidemill.model.jobs.job import FINAL, JobState
from tidemill.model.time import DAY
from tidemill.model.view import JobFilter

PACKAGE = sqlite.__name__
STATEMENTS = {
    f"{source}.{name}": text
    for source in sorted(Path(file.name).stem for file in files(sqlite).joinpath("sql").iterdir())
    for name, text in load_statements(PACKAGE, source).items()
}
NOW = 100 * DAY


@contextmanager
def our_schema() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        prepare(connection, parse_url("sqlite://"), namespace="tidemill", migrate=True)
        yield connection


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    """An empty database of ours, for tests that write nothing."""
    with our_schema() as connection:
        yield connection


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """A database of ours with one queue."""
    with our_schema() as connection:
        options = b'{"keep_completed":{"age":9,"count":1},"keep_dead":{"age":9,"count":1}}'
        connection.execute("INSERT INTO queue (name, options, created_at) VALUES ('q', ?, 0)", (options,))
        yield connection


PLACES = {
    JobState.BLOCKED: "INSERT INTO blocked SELECT queue, pk FROM job",
    JobState.SCHEDULED: "INSERT INTO due SELECT queue, due_at, seq, pk FROM job",
    JobState.READY: "INSERT INTO ready SELECT queue, priority, 0, '', max(seq), min(seq), seq - pk FROM job",
    JobState.RUNNING: "INSERT INTO run SELECT max(pk), min(pk), 100, queue, 1, 1, 0, 'm' FROM job",
}
"""How jobs come to stand where their state belongs. All the ready and all the running are one range."""


def add_jobs(db: sqlite3.Connection, state: JobState, count: int = 9) -> None:
    """Jobs in a state, as far as a listing or retention looks at them; ended ones two at a time."""
    waiting = min(CODE[state], CODE[JobState.READY])
    insert = f"""INSERT INTO job (id, queue, priority, seq, state, task, key, max_attempts, created_at,
        due_at, ready_at, codec) VALUES (?, 1, 5, ?, {waiting}, 't', '', 5, 0, ?, 0, 1)"""
    db.executemany(insert, [(bytes([CODE[state], n] * 8), n, n) for n in range(count)])
    if state in PLACES:
        db.execute(PLACES[state])
    else:
        ended = f"SELECT pk, {CODE[state]}, seq / 2 FROM job WHERE hex(id) LIKE '0{CODE[state]}%'"
        db.execute(f"INSERT INTO outcome (pk, state, ended_at) {ended}")
        db.execute(f"""INSERT INTO ended SELECT 1, state, ended_at, max(pk), min(pk) FROM outcome
            WHERE state = {CODE[state]} GROUP BY ended_at""")
        db.execute(f"""INSERT INTO dead SELECT 1, 't', ended_at, pk, 'f' FROM outcome
            WHERE state = {CODE[state]} AND state = 5""")
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
    return [text for text in texts if "job_now" in text and "ORDER BY" in text]


def a_step(db: sqlite3.Connection) -> Step:
    catalogue = Catalogue(db)
    catalogue.refresh()
    return Step(db, catalogue, NOW)


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_can_be_prepared(empty: sqlite3.Connection, name: str) -> None:
    plan(empty, STATEMENTS[name])


def test_a_statement_that_cannot_be_prepared_is_found(db: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        plan(db, "UPDATE job SET colour = ? WHERE pk = ?")


LARGE = (
    "job", "more", "outcome", "ready", "due", "blocked", "ended", "dead", "grave", "expiring", "held",
    "log", "failure", "checkpoint", "wait", "lane", "start", "finished", "parked",
)  # fmt: skip
"""Tables that grow with what is stored. Members, claimants, queues, tasks, schedules and runs are few."""


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_walks_through_a_large_table(empty: sqlite3.Connection, name: str) -> None:
    steps = plan(empty, STATEMENTS[name]).splitlines()
    assert [step for step in steps for table in LARGE if step.split()[:2] == ["SCAN", table]] == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_only_a_change_of_limits_walks_through_the_runs(empty: sqlite3.Connection, name: str) -> None:
    walks = [
        step for step in plan(empty, STATEMENTS[name]).splitlines() if step.split()[:2] == ["SCAN", "run"]
    ]
    assert len(walks) == (name == "gates.hold_running")


def test_such_a_walk_is_found(db: sqlite3.Connection) -> None:
    assert plan(db, "SELECT pk FROM job WHERE body = ?").splitlines() == ["SCAN job"]


@pytest.mark.parametrize(
    ("text", "index"),
    [
        (
            ready_rows.IN_LANE,
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=? AND last>?)",
        ),
        (ready_rows.IN_LANE, "job USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (
            STATEMENTS["claim.front"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=?)",
        ),
        (STATEMENTS["claim.front"], "job USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (
            STATEMENTS["claim.take_whole"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=? AND last<?)",
        ),
        (
            STATEMENTS["claim.take_front"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=? AND last=?)",
        ),
        (STATEMENTS["lanes.check_queue"], "due USING PRIMARY KEY (queue=? AND due_at<?)"),
        (STATEMENTS["lanes.check_queue"], "lane_stale (queue=?)"),
        (STATEMENTS["lanes.check_plain_queue"], "lane_open (queue=?)"),
        (
            STATEMENTS["lanes.check_plain_queue"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=?)",
        ),
        (STATEMENTS["promote.due"], "due USING PRIMARY KEY (queue=? AND due_at<?)"),
        (STATEMENTS["promote.next_due"], "due USING PRIMARY KEY (queue=?)"),
        (
            STATEMENTS["lanes.open_lanes"],
            "lane_open (queue=? AND priority=? AND kind=? AND task=? AND lane>? AND lane<?)",
        ),
        (STATEMENTS["lanes.next_priority"], "lane_open (queue=? AND priority>?)"),
        (
            STATEMENTS["lanes.stale_jobs"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=? AND last>?)",
        ),
        (
            STATEMENTS["ranges.ready_find"],
            "ready USING PRIMARY KEY (queue=? AND priority=? AND kind=? AND lane=? AND last>?)",
        ),
        (STATEMENTS["ranges.run_find"], "run USING INTEGER PRIMARY KEY (rowid>?)"),
        (STATEMENTS["settle.runs_plainly"], "run USING INTEGER PRIMARY KEY (rowid>?)"),
        (STATEMENTS["settle.runs_plainly"], "more USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (
            STATEMENTS["ranges.ended_find"],
            "ended USING PRIMARY KEY (queue=? AND state=? AND ended_at=? AND last>?)",
        ),
        (STATEMENTS["gates.held_by_task"], "held_task (queue=? AND task=?)"),
        (STATEMENTS["gates.held_by_key"], "held_key (queue=? AND key=?)"),
        (STATEMENTS["gates.wake"], "parked_wake (queue=? AND wake_at>? AND wake_at<?)"),
    ],
    ids=[
        "in lane",
        "jobs in lane",
        "front of a lane",
        "jobs at the front",
        "take whole ranges",
        "take the front",
        "anything due",
        "anything stale",
        "first priority",
        "any suspect",
        "due",
        "next due",
        "open lanes",
        "next priority",
        "stale jobs",
        "position in lane",
        "run",
        "plain run",
        "more than plain",
        "position among the ended",
        "by task",
        "by key",
        "wake",
    ],
)
def test_in_the_order_of_its_index(db: sqlite3.Connection, text: str, index: str) -> None:
    """Nothing is sorted, so that the first row costs one row."""
    found = plan(db, text).replace(" EXISTS ", " ")  # as SQLite 3.53 names such a subquery
    assert index in found
    assert "TEMP B-TREE" not in found


def test_what_a_claimant_holds_is_found_by_claimant(db: sqlite3.Connection) -> None:
    (text,) = caught(db, lambda: facts.running_under(a_step(db), 1))
    assert "run_claimant (claimant=?)" in plan(db, text)


@pytest.mark.parametrize(
    "name",
    ["settle.use_attempt", "moves.to_ready", "moves.to_scheduled", "moves.bury", "promote.make_ready"],
)
def test_jobs_are_written_by_primary_key(db: sqlite3.Connection, name: str) -> None:
    (step,) = plan(db, STATEMENTS[name]).splitlines()
    assert re.match(r"SEARCH (job|outcome) USING INTEGER PRIMARY KEY \(rowid=", step)


@pytest.mark.parametrize("table", ["ready", "run", "ended"])
@pytest.mark.parametrize("change", ["shorten", "remove", "split"])
def test_ranges_are_written_by_their_key(db: sqlite3.Connection, table: str, change: str) -> None:
    (step,) = plan(db, STATEMENTS[f"ranges.{table}_{change}"]).splitlines()
    assert re.match(rf"SEARCH {table} USING (INTEGER )?PRIMARY KEY .*(last|rowid)=\?", step)


def test_retention_begins_with_the_oldest(db: sqlite3.Connection) -> None:
    for state in FINAL:
        add_jobs(db, state)
    young = a_step(db)
    young.now = 10  # nothing is old yet: what goes goes by count
    texts = caught(db, lambda: prune(young, 1)) + caught(db, lambda: prune(a_step(db), 1_000))
    plans = [plan(db, text) for text in texts if "FROM ended" in text]
    assert plans
    assert len({text.partition("WHERE")[2].partition("ended_at <=")[1] for text in texts}) == 2, (
        "age and count"
    )
    assert all("ended USING PRIMARY KEY (queue=? AND state=?" in found for found in plans)
    assert not [found for found in plans if "TEMP B-TREE" in found]


def test_tombstones_go_oldest_first(db: sqlite3.Connection) -> None:
    text = caught(db, lambda: prune(a_step(db), 1_000))[-1]
    assert "SEARCH grave USING PRIMARY KEY (ended_at<?)" in plan(db, text)
    assert "TEMP B-TREE" not in plan(db, text)


def test_what_expires_is_found_in_its_order(db: sqlite3.Connection) -> None:
    texts = caught(db, lambda: promote(a_step(db), 10))
    (found,) = [plan(db, text) for text in texts if "ORDER BY expiring.expires_at" in text]
    assert "SEARCH expiring USING PRIMARY KEY (expires_at<?)" in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize(
    ("state", "index"),
    [
        (JobState.BLOCKED, "SEARCH blocked USING PRIMARY KEY (queue=?"),
        (JobState.SCHEDULED, "SEARCH due USING PRIMARY KEY (queue=?"),
        (JobState.READY, "SEARCH ready USING PRIMARY KEY (queue=?"),
        (JobState.RUNNING, " run"),  # which are as few as there are slots
        (JobState.COMPLETED, "SEARCH ended USING PRIMARY KEY (queue=? AND state=?"),
        (JobState.DEAD, "SEARCH ended USING PRIMARY KEY (queue=? AND state=?"),
        (JobState.CANCELLED, "SEARCH ended USING PRIMARY KEY (queue=? AND state=?"),
    ],
)
def test_listings_walk_along_an_index(db: sqlite3.Connection, state: JobState, index: str) -> None:
    """The first page and a later one."""
    add_jobs(db, state)
    only = JobFilter(state=state)
    pages = [page(db, only, None, 4)]
    texts = caught(db, lambda: page(db, only, None, 4))
    texts += caught(db, lambda: pages.append(page(db, only, read_cursor(only, pages[0].cursor), 4)))
    assert [len(each.jobs) for each in pages] == [4, 4]
    assert len(texts) == 2
    for text in texts:
        assert index in plan(db, text)
        assert "SCAN job" not in plan(db, text)
        assert "TEMP B-TREE" not in plan(db, text)
