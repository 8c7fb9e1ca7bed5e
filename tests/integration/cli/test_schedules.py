"""`tidemill schedules`."""

from typing import Any

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.ids import new_id, parse_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Cron, Every, Schedule, Startup
from tidemill.model.time import HOUR


def put(store: Store, name: str, timing: Any, **options: Any) -> None:
    job = NewJob(id=new_id(), task=f"shop.{name}", queue="default")
    store.do(lambda engine: engine.schedules.put([Schedule(name=name, timing=timing, job=job, **options)]))


@pytest.mark.row("D4")
def test_a_list_in_words(store: Store, run: Run) -> None:
    now = store.do(lambda engine: engine.now())
    weekly = Cron(fields="0 3 * * sun", tz="Europe/Berlin")
    put(store, "weekly", weekly, next_at=now + 2 * HOUR + HOUR // 2, source="shop:app", overlap="queue")
    put(store, "sweep", Every(seconds=3), next_at=None)
    put(store, "gone", Cron(fields="0 4 * * *"), next_at=now + HOUR, source="shop:app")
    put(store, "up", Startup())
    store.do(lambda engine: engine.schedules.retire("gone", retired=True))
    lines = run("schedules", "ls").out.splitlines()
    gone, sweep, up, week = lines[1:]
    assert "every Sunday at 03:00 Europe/Berlin" in week
    assert "in 2 h 29 min" in week or "in 2 h 30 min" in week
    assert "queue" in week
    assert "shop:app" in week
    assert "3 s after each run" in sweep
    assert "running" in sweep
    assert "retired" in gone
    assert "when the cluster starts" in up
    shapes = {shape["name"]: shape for shape in run("schedules", "ls", "--json").objects}
    assert shapes["weekly"]["cron"] == "0 3 * * sun"
    assert (shapes["weekly"]["kind"], shapes["weekly"]["tz"]) == ("cron", "Europe/Berlin")
    assert (shapes["sweep"]["every_s"], shapes["sweep"]["next_at"]) == (3.0, None)
    assert shapes["gone"]["state"] == "retired"
    assert shapes["gone"]["retired_at"].endswith("Z")


def test_run_pause_resume_remove(store: Store, run: Run) -> None:
    put(store, "weekly", Cron(fields="0 3 * * sun"), next_at=5)
    assert run("schedules", "pause", "weekly").code == 0
    assert run("schedules", "ls", "--json").object["state"] == "paused"
    ran = run("schedules", "run", "weekly", "--json").object
    (job,) = store.do(lambda engine: engine.inspect.get([parse_id(ran["job"])]))
    assert job is not None
    assert (job.task, job.schedule) == ("shop.weekly", "weekly")
    again = run("schedules", "run", "weekly")
    assert (again.code, ran["job"] in again.err) == (1, True)  # the last run has not ended
    assert run("schedules", "resume", "weekly").code == 0
    shape = run("schedules", "ls", "--json").object
    assert (shape["state"], shape["last_job"]) == ("active", ran["job"])
    assert shape["next_at"] > "2026"  # what was due in the pause is left out
    assert run("schedules", "rm", "weekly").code == 0
    assert "declare one" in run("schedules", "ls").err
    audit = store.do(lambda engine: engine.inspect.audit())
    assert [entry.action.partition(" ")[0] for entry in audit] == ["remove", "resume", "run", "pause"]
    assert all(entry.by.startswith("cli:") for entry in audit)


def test_a_full_line_is_refused_without_names_of_python(store: Store, run: Run) -> None:
    put(store, "weekly", Cron(fields="0 3 * * sun"), overlap="queue", waiting=1)
    assert [run("schedules", "run", "weekly").code for _ in range(2)] == [0, 0]
    full = run("schedules", "run", "weekly")
    assert full.code == 1
    assert "1 job of 'weekly' waits already, the most that the schedule allows" in full.err
    assert "=" not in full.err


@pytest.mark.parametrize("verb", ["run", "pause", "resume", "rm"])
def test_a_schedule_that_does_not_exist(store: Store, run: Run, verb: str) -> None:
    put(store, "weekly", Every(seconds=3))
    ran = run("schedules", verb, "weakly")
    assert ran.code == 1
    assert "did you mean 'weekly'?" in ran.err
