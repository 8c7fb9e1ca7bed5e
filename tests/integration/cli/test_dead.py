"""`tidemill dead`: list, look, edit, replay, drop."""

import os
import pty
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import DEATH, Store
from tests.programs import running
from tidemill.model.ids import new_id, show_id
from tidemill.model.jobs.run import Failed
from tidemill.model.view import TaskEntry

pytestmark = pytest.mark.row("A5")


def test_a_list_has_dead_letters_only(store: Store, run: Run) -> None:
    store.completed(2)
    ids = store.dead(2)
    found = run("dead", "ls", "--json").objects
    assert {job["id"] for job in found} == {show_id(job_id) for job_id in ids}
    assert found[0]["error"]["message"].startswith("no such user")


@pytest.mark.every_engine
def test_a_dead_letter_is_shown_with_payload_errors_times_and_worker(store: Store, run: Run) -> None:
    [job_id] = store.dead()
    job = run("dead", "show", show_id(job_id), "--json").object
    assert job["payload"] == {"args": ["a@b.c"], "kwargs": {"n": 1}}
    assert job["failures"][0]["worker"] == job["worker"] == "host:1"
    assert job["failures"][0]["ended_at"] == job["ended_at"]


def test_a_job_that_is_not_dead_is_not_shown(store: Store, run: Run) -> None:
    [job_id] = store.completed()
    ran = run("dead", "show", show_id(job_id))
    assert (ran.code, ran.err) == (1, f"tidemill: {show_id(job_id)}: it is completed, not dead\n")


def test_one_is_replayed(store: Store, run: Run) -> None:
    first, _ = store.dead(2)
    assert run("dead", "replay", show_id(first)).out == f"{show_id(first)} replayed\n"
    assert store.states() == {"ready": 1, "dead": 1}


def test_a_completed_job_is_left_alone(store: Store, run: Run) -> None:
    [job_id] = store.completed()
    for command in ("replay", "drop"):
        ran = run("dead", command, show_id(job_id), show_id(new_id()), "--json")
        assert [answer["answer"] for answer in ran.objects] == ["completed, not dead", "unknown"]
        assert ran.code == 1
    assert store.states() == {"completed": 1}


@pytest.mark.every_engine(2)
@pytest.mark.parametrize(
    ("options", "left"),
    [(("--queue", "mail"), 3), (("--task", "shop.other"), 3), (("--text", "no such"), 0), (("--all",), 0)],
)
@pytest.mark.parametrize(("command", "answer"), [("replay", "replayed"), ("drop", "dropped")])
def test_all_of_a_filter(
    store: Store, run: Run, command: str, answer: str, options: tuple[str, ...], left: int
) -> None:
    store.dead(3)
    store.dead(2, queue="mail", task="shop.other")
    ran = run("dead", command, *options, "--yes", "--json")
    assert ran.code == 0
    assert ran.object == {"matched": 5 - left, "answers": {answer: 5 - left}}
    assert store.states().get("dead", 0) == left


@pytest.mark.every_engine
def test_many_are_replayed_each_once(store: Store, run: Run) -> None:
    store.dead(1_000)
    store.dead(1_000)
    store.dead(500)
    assert run("dead", "replay", "--all", "--yes").out == "2,500 jobs: replayed\n"
    assert store.states() == {"ready": 2_500}


def test_without_a_terminal_nothing_is_asked_and_nothing_done(store: Store, execute: Run) -> None:
    store.dead(7)
    ran = execute("dead", "drop", "--all")
    assert ran.code == 2
    assert "7 jobs found; the first:" in ran.err
    assert "add --yes" in ran.err
    assert len(ran.err.splitlines()) == 8
    assert store.states() == {"dead": 7}


@pytest.mark.parametrize(("word", "code", "left"), [("y", 0, {}), ("n", 1, {"dead": 2})])
def test_on_a_terminal_a_preview_is_confirmed(
    store: Store, word: str, code: int, left: dict[str, int]
) -> None:
    store.dead(2)
    ours, theirs = pty.openpty()
    command = (sys.executable, "-m", "tidemill", "dead", "drop", "--all")
    with running(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.write(ours, f"{word}\n".encode())
        shown = b""
        while chunk := _read(ours):
            shown += chunk
        assert process.wait(30) == code
    os.close(ours)
    assert b"Drop 2 jobs? [y/N]" in shown
    assert store.states() == left


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4_096)
    except OSError:  # the other side is closed
        return b""


def test_nothing_that_matches_is_no_error(store: Store, run: Run) -> None:
    ran = run("dead", "replay", "--queue", "mail", "--yes")
    assert (ran.code, ran.out) == (0, "no job matches\n")


@pytest.mark.every_engine
def test_an_edited_dead_letter_is_the_same_job(store: Store, run: Run) -> None:
    [job_id] = store.dead()
    ran = run("dead", "replay", show_id(job_id), "--edit", '["x@y.z"]', "--edit", '{"n": 2}', "--json")
    assert (ran.code, ran.object) == (0, {"id": show_id(job_id), "answer": "replayed"})
    job = store.get(job_id)
    assert job is not None
    assert job.body == b'[["x@y.z"],{"n":2}]'
    assert (job.state, job.replays, job.attempts, job.failure_count) == ("ready", 1, 0, 1)
    [entry] = store.do(lambda engine: engine.inspect.audit())
    assert entry.action == "edit"


@pytest.mark.parametrize(("of_task", "key"), [("to", "x@y.z"), (None, "gold")])
@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_a_key_that_comes_from_an_argument_comes_from_the_edited_one(
    store: Store, run: Run, of_task: str | None, key: str
) -> None:
    schema = b'{"positional":["to"],"properties":{"to":{}},"required":["to"]}'
    entry = TaskEntry(name="shop.mail", queue="default", schema=schema, key=of_task)
    store.do(lambda engine: engine.tasks.publish([entry]))
    store.put(key="gold")
    [job_id] = store.end(store.take(), Failed(failure=DEATH))
    assert run("dead", "replay", show_id(job_id), "--edit", '["x@y.z"]').code == 0
    job = store.get(job_id)
    assert job is not None
    assert job.key == key


def test_an_edit_is_checked_against_the_catalogue(store: Store, run: Run) -> None:
    schema = b'{"positional":["to"],"properties":{"to":{}},"required":["to"]}'
    store.do(
        lambda engine: engine.tasks.publish([TaskEntry(name="shop.mail", queue="default", schema=schema)])
    )
    [job_id] = store.dead()
    ran = run("dead", "replay", show_id(job_id), "--edit", '{"too": 1}')
    assert ran.code == 2
    assert "missing to" in ran.err
    assert store.states() == {"dead": 1}


@pytest.mark.parametrize("edit", ["17", "[1", "@missing.json"])
def test_a_bad_edit_changes_nothing(store: Store, run: Run, edit: str) -> None:
    [job_id] = store.dead()
    assert run("dead", "replay", show_id(job_id), "--edit", edit).code == 2
    assert store.states() == {"dead": 1}


def test_an_edit_takes_one_dead_letter(store: Store, run: Run) -> None:
    [job_id] = store.completed()
    assert run("dead", "replay", "--all", "--edit", "[]").code == 2
    assert run("dead", "replay", show_id(job_id), "--edit", "[]").code == 1


def test_an_edit_may_come_from_a_file(store: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / "edit.json").write_text('["file"]')
    [job_id] = store.dead()
    assert run("dead", "replay", show_id(job_id), "--edit", "@edit.json").code == 0


def test_what_is_done_is_in_the_audit(store: Store, run: Run) -> None:
    [job_id] = store.dead()
    run("dead", "replay", show_id(job_id))
    [entry] = store.do(lambda engine: engine.inspect.audit())
    assert entry.by.startswith("cli:")
    assert entry.action == "replay"
