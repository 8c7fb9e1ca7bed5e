"""`tidemill tasks ls|pause|resume`."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.time import SECOND
from tidemill.model.view import TaskEntry


@pytest.fixture
def published(store: Store) -> Store:
    """What a worker has published."""
    entries = [TaskEntry(name="mail", queue="post", timeout=30 * SECOND), TaskEntry(name="print", queue="q")]
    store.do(lambda engine: engine.tasks.publish(entries))
    return store


@pytest.mark.usefixtures("published")
def test_pause_and_resume_with_a_reason(run: Run) -> None:
    done = run("tasks", "pause", "mail", "--why", "their server is down")
    assert (done.code, done.err) == (0, "mail is paused\n")
    mail, other = [line for line in run("tasks", "ls").out.splitlines() if line and "TASK" not in line]
    assert "by cli:" in mail
    assert "their server is down" in mail
    assert "since" not in other
    shape = run("tasks", "ls", "--json").objects[0]
    assert (shape["name"], shape["timeout_s"], shape["paused_why"]) == ("mail", 30, "their server is down")
    done = run("tasks", "resume", "mail")
    assert (done.code, done.err) == (0, "mail goes on\n")
    assert run("tasks", "ls", "--json").objects[0]["paused_at"] is None


@pytest.mark.usefixtures("published")
def test_a_name_that_is_not_known_is_refused(run: Run) -> None:
    done = run("tasks", "pause", "mial")
    assert done.code != 0
    assert "did you mean 'mail'" in done.err


@pytest.mark.usefixtures("store")
def test_without_tasks_it_says_what_to_do(run: Run) -> None:
    assert "start one" in run("tasks", "ls").err
