"""`tidemill jobs`."""

import subprocess
import sys

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import DEATH, Store
from tidemill.model.ids import new_id, parse_id, show_id
from tidemill.model.jobs.run import Failed
from tidemill.model.time import HOUR


@pytest.mark.every_engine
@pytest.mark.row("C1", "C3")
def test_a_list_shows_jobs_by_state_and_queue(store: Store, run: Run) -> None:
    store.completed(2)
    store.dead(1, queue="mail")
    store.put(1, delay=HOUR)
    [ready] = store.put(1, task="shop.other", queue="mail")
    found = run("jobs", "ls", "--json").objects
    assert [job["state"] for job in found] == ["scheduled", "ready", "completed", "completed", "dead"]
    assert run("jobs", "ls", "--state", "ready", "--json").object["id"] == show_id(ready)
    assert len(run("jobs", "ls", "-q", "mail", "--json").objects) == 2
    assert len(run("jobs", "ls", "--task", "shop.other", "--json").objects) == 1
    assert len(run("jobs", "ls", "--text", "no such user", "--json").objects) == 1
    assert len(run("jobs", "ls", "-n", "3", "--json").objects) == 3


def test_a_list_for_people_has_one_line_a_job_whatever_is_in_it(store: Store, run: Run) -> None:
    store.dead(3)
    ran = run("jobs", "ls")
    assert len(ran.out.splitlines()) == 4
    assert "ValueError: no such user second line \\x1b[31m" in ran.out
    assert "\x1b" not in ran.out
    assert (ran.code, ran.err) == (0, "")


def test_an_empty_list_says_so_apart(store: Store, run: Run) -> None:
    ran = run("jobs", "ls")
    assert (ran.code, ran.out, ran.err) == (0, "", "no job matches\n")
    assert run("jobs", "ls", "--json").out == ""


def test_a_list_that_was_cut_says_so(store: Store, run: Run) -> None:
    store.put(3)
    assert "the first 2; --limit all shows all" in run("jobs", "ls", "-n", "2").err


@pytest.mark.parametrize("limit", ["0", "-1", "many", ""])
def test_a_limit_is_a_number_or_all(store: Store, run: Run, limit: str) -> None:
    ran = run("jobs", "ls", "-n", limit)
    assert ran.code == 2
    assert "neither a number of rows nor `all`" in ran.err or "requires an argument" in ran.err


def test_a_huge_list_is_printed_whole(store: Store, execute: Run) -> None:
    ids = store.put(5_000)
    found = execute("jobs", "ls", "--limit", "all", "--json").objects
    assert [job["id"] for job in found] == [show_id(job) for job in ids]
    assert len(execute("jobs", "ls", "--limit", "all").out.splitlines()) == 5_001


def test_a_reader_may_go_away(store: Store) -> None:
    store.put(5_000)
    script = f"set -o pipefail; {sys.executable} -m tidemill jobs ls -n all --json | head -1"
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (141, "")
    assert len(run.stdout.splitlines()) == 1


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
def test_a_job_that_runs_for_the_first_time_is_at_its_first_attempt(store: Store, run: Run) -> None:
    [job_id] = store.put()
    assert run("jobs", "show", show_id(job_id), "--json").object["attempts"] == 0
    [claimed] = store.take()
    assert run("jobs", "show", show_id(job_id), "--json").object["attempts"] == claimed.attempt == 1
    assert "1/5" in run("jobs", "ls").out


@pytest.mark.every_engine
@pytest.mark.row("C1")
def test_show_tells_everything(store: Store, run: Run) -> None:
    [job_id] = store.dead()
    job = run("jobs", "show", show_id(job_id), "--json").object
    shown = {
        "id": show_id(job_id),
        "task": "shop.mail",
        "queue": "default",
        "priority": 5,
        "state": "dead",
        "attempts": 1,
        "max_attempts": 5,
        "crashes": 0,
        "worker": "host:1",
        "payload": {"args": ["a@b.c"], "kwargs": {"n": 1}},
        "timeout_s": None,
        "due_at": None,
    }
    assert shown.items() <= job.items()
    for moment in ("created_at", "ready_at", "claimed_at", "started_at", "ended_at"):
        assert job[moment].endswith("Z")
        assert "T" in job[moment]
    [failure] = job["failures"]
    assert failure == job["error"]
    assert failure["error"] == "builtins.ValueError"
    assert "Traceback" in failure["traceback"]


@pytest.mark.row("C1")
def test_show_for_people_tells_everything(store: Store, run: Run) -> None:
    [job_id] = store.dead()
    text = run("jobs", "show", show_id(job_id)).out
    names = ("id", "task", "queue", "priority", "state", "attempts", "crashes", "created", "ready", "started")
    for name in (*names, "finished", "worker", "payload", "failures"):
        assert f"\n{name:<11} " in f"\n{text}"
    assert '[["a@b.c"],{"n":1}]' in text
    assert "    ValueError: no such user" in text


def test_show_has_the_result_of_a_completed_job(store: Store, run: Run) -> None:
    [job_id] = store.completed()
    assert run("jobs", "show", show_id(job_id), "--json").object["result"] == 42


def test_show_has_the_log(store: Store, run: Run) -> None:
    store.put()
    [claimed] = store.take()
    store.log(claimed, "first", "second \x1b[0m")
    text = run("jobs", "show", "--log", show_id(claimed.id)).out
    assert "first" in text
    assert "second \\x1b[0m" in text


def test_a_payload_that_cannot_be_read_is_shown_all_the_same(store: Store, run: Run) -> None:
    [job_id] = store.put(body=b"\xff not JSON")
    assert "bytes that cannot be read" in run("jobs", "show", show_id(job_id)).out
    assert run("jobs", "show", show_id(job_id), "--json").object["payload"] is None


def test_an_unknown_id_is_named_and_the_others_are_shown(store: Store, run: Run) -> None:
    [known], unknown = store.completed(), show_id(new_id())
    ran = run("jobs", "show", unknown, show_id(known), "--json")
    assert ran.code == 1
    assert ran.err == f"tidemill: {unknown}: there is no such job\n"
    assert ran.object["id"] == show_id(known)


@pytest.mark.parametrize("bad", ["17", "xyz", "0192"])
def test_what_is_not_an_id_is_wrong_usage(store: Store, run: Run, bad: str) -> None:
    ran = run("jobs", "show", bad)
    assert ran.code == 2
    assert "a job id is a UUID such as" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_retry_runs_a_finished_job_again(store: Store, run: Run) -> None:
    [dead], [live] = store.dead(), store.put()
    ran = run("jobs", "retry", show_id(dead), show_id(live), "--json")
    assert ran.objects == [
        {"id": show_id(dead), "answer": "replayed"},
        {"id": show_id(live), "answer": "live"},
    ]
    assert ran.code == 1
    assert store.states() == {"ready": 2}
    assert run("jobs", "retry", show_id(new_id())).err.endswith(" unknown\n")


def test_retry_by_filter_means_dead_letters_unless_a_state_is_named(store: Store, run: Run) -> None:
    store.dead(2)
    store.completed(3)
    assert run("jobs", "retry", "--queue", "default", "--yes", "--json").object["answers"] == {"replayed": 2}
    assert run("jobs", "retry", "--state", "completed", "--yes").out == "3 jobs: replayed\n"
    ran = run("jobs", "retry", "--state", "ready", "--yes")
    assert ran.code == 2
    assert "replay is for jobs that are completed or dead or cancelled, not ready" in ran.err


def test_cancel_by_filter_leaves_finished_jobs_alone(store: Store, run: Run) -> None:
    store.completed(3)
    store.put(2)
    store.put(1, delay=HOUR)
    assert run("jobs", "cancel", "--all", "--yes", "--json").object == {
        "matched": 3,
        "answers": {"cancelled": 3},
    }
    assert store.states() == {"completed": 3, "cancelled": 3}


def test_cancel_stops_what_waits_and_asks_what_runs(store: Store, run: Run) -> None:
    [running] = store.put()
    store.take()
    [waiting] = store.put()
    ran = run("jobs", "cancel", show_id(running), show_id(waiting), "--json")
    assert [answer["answer"] for answer in ran.objects] == ["asked", "cancelled"]
    assert ran.code == 0
    assert run("jobs", "show", show_id(running), "--json").object["cancel_asked"] is True


@pytest.mark.every_engine
@pytest.mark.row("C3")
def test_clear_takes_away_a_queue_a_state_or_everything(store: Store, run: Run) -> None:
    store.dead(2)
    store.completed(2)
    store.put(3, queue="mail")
    assert run("jobs", "clear", "--state", "completed", "--yes").code == 0
    assert store.states() == {"ready": 3, "dead": 2}
    assert run("jobs", "clear", "--queue", "mail", "--yes", "--json").object == {
        "matched": 3,
        "answers": {"dropped": 3},
    }
    assert store.states() == {"dead": 2}
    store.put(2)
    assert run("jobs", "clear", "--all", "--yes").code == 0
    assert store.states() == {}


def test_clear_only_asks_what_runs(store: Store, run: Run) -> None:
    [job_id] = store.put()
    [claimed] = store.take()
    assert run("jobs", "clear", "--all", "--yes", "--json").object["answers"] == {"asked": 1}
    store.end([claimed], Failed(failure=DEATH))
    assert store.states() == {"cancelled": 1}
    assert run("jobs", "clear", show_id(job_id)).code == 0
    assert store.get(job_id) is None


@pytest.mark.parametrize("command", ["retry", "cancel", "clear"])
def test_a_command_on_nothing_in_particular_is_refused(store: Store, run: Run, command: str) -> None:
    ran = run("jobs", command)
    assert ran.code == 2
    assert "give ids, a filter such as --queue or --task, or --all" in ran.err


def test_ids_and_a_filter_together_are_refused(store: Store, run: Run) -> None:
    [job_id] = store.put()
    assert run("jobs", "cancel", show_id(job_id), "--all").code == 2
    assert store.states() == {"ready": 1}


def test_ids_are_read_in_any_form(store: Store, run: Run) -> None:
    [job_id] = store.put()
    shown = run("jobs", "show", job_id.hex().upper(), "--json").object["id"]
    assert parse_id(shown) == job_id
