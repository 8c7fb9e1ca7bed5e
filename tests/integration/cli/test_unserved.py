"""Jobs that wait in vain: what `doctor`, `jobs show` and `members` say of them."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.ids import new_id, show_id
from tidemill.model.member import MemberInfo, marks_of_tasks
from tidemill.model.time import HOUR
from tidemill.model.view import TaskEntry


@pytest.fixture
def served(store: Store) -> Store:
    """A worker that takes the queue email and knows shop.send."""
    info = MemberInfo(
        id=new_id(),
        name="host:1",
        queues=("email",),
        roles=("worker", "controller"),
        tasks=marks_of_tasks(["shop.send"]),
        lease=HOUR,
    )
    entries = [TaskEntry(name="shop.send", queue="email"), TaskEntry(name="shop.gone", queue="email")]
    store.do(lambda engine: engine.members.heartbeat(info))
    store.do(lambda engine: engine.tasks.publish(entries))
    return store


@pytest.mark.every_engine
def test_doctor_names_queues_that_nobody_takes_and_tasks_that_nobody_has(served: Store, run: Run) -> None:
    served.put(2, queue="email", task="shop.send")
    assert run("doctor").code == 0
    served.put(2, queue="emial", task="shop.send")
    served.put(1, queue="email", task="shop.sned", delay=HOUR)
    served.put(1, queue="later", task="shop.send", delay=HOUR)  # not ready: there is time to start a worker
    found = run("doctor", "--json")
    assert found.code == 1
    kinds = {(each["kind"], each["subject"]): each["text"] for each in found.object["warnings"]}
    assert set(kinds) == {("queue", "emial"), ("task", "shop.sned")}
    assert "did you mean 'email'?" in kinds["queue", "emial"]
    assert "did you mean 'shop.send'?" in kinds["task", "shop.sned"]
    assert "did you mean 'email'?" in run("doctor").err


def test_doctor_says_that_no_worker_is_there(store: Store, run: Run) -> None:
    store.put(1, queue="email")
    store.put(1, queue="other")
    [warning] = run("doctor", "--json").object["warnings"]
    assert "no live worker is there" in warning["text"]


def test_jobs_show_says_it_of_one_job(served: Store, run: Run) -> None:
    [good] = served.put(1, queue="email", task="shop.send")
    [misspelt] = served.put(1, queue="emial", task="shop.send")
    [unknown] = served.put(1, queue="email", task="shop.sned", delay=HOUR)
    shown = run("jobs", "show", *map(show_id, (good, misspelt, unknown)))
    assert shown.code == 0
    first, second = shown.err.splitlines()
    assert first.startswith(f"warning: {show_id(misspelt)}: no live worker takes the queue 'emial'")
    assert show_id(unknown) in second
    assert "did you mean 'shop.send'?" in second


def test_members_show_the_tasks_that_they_have(served: Store, run: Run) -> None:
    assert run("members", "--json").object["tasks"] == ["shop.send"]
