"""`tidemill dead groups`, `--group`, and the other filters of lists and bulk actions."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.run import Failed
from tidemill.model.time import HOUR


def two_errors(store: Store) -> None:
    """500 dead letters of two errors."""
    for count, error in ((400, "shop.Declined"), (100, "builtins.TimeoutError")):
        store.put(count, task="shop.pay")
        failure = Failure(error=error, message=f"order {count} 'x' of 17")
        store.end(store.take(), Failed(failure=failure))


@pytest.mark.row("F15")
@pytest.mark.every_engine
def test_dead_letters_of_two_errors_are_two_groups_and_one_of_them_is_replayed(
    store: Store, run: Run
) -> None:
    two_errors(store)
    big, small = run("dead", "groups", "--json").objects
    assert [(group["count"], group["error"], group["task"]) for group in (big, small)] == [
        (400, "shop.Declined", "shop.pay"),
        (100, "builtins.TimeoutError", "shop.pay"),
    ]
    assert big["pattern"] == "order <n> <text> of <n>"
    (one,) = run("dead", "ls", "--group", big["group"], "--limit", "1", "--json").objects
    assert (one["id"], one["group"]) == (big["sample"], big["group"])
    shown = run("dead", "show", one["id"]).out
    assert f"group       {big['group']}" in shown
    ran = run("dead", "replay", "--group", big["group"], "--yes", "--json")
    assert ran.object == {"matched": 400, "answers": {"replayed": 400}}
    assert store.states() == {"ready": 400, "dead": 100}
    (left,) = run("dead", "groups", "--json").objects
    assert left["group"] == small["group"]
    run("dead", "drop", "--group", small["group"], "--yes")
    assert run("dead", "groups").err == "no dead letters\n"


def test_a_preview_names_the_jobs_of_a_group(store: Store, execute: Run) -> None:
    two_errors(store)
    (group, _) = execute("dead", "groups", "--json").objects
    ran = execute("dead", "drop", "--group", group["group"])
    assert ran.code == 2
    assert "400 jobs found; the first:" in ran.err


def test_groups_are_listed_for_people(store: Store, run: Run) -> None:
    two_errors(store)
    store.dead(1, queue="mail")
    head, first, *_ = run("dead", "groups").out.splitlines()
    assert head.split() == ["JOBS", "QUEUE", "GROUP", "FIRST", "LAST", "ERROR"]
    assert first.split()[0] == "400"
    assert first.endswith("Declined: order <n> <text> of <n>")
    assert run("dead", "groups", "--limit", "1").err == "the first 1 of 3 groups\n"
    assert [group["queue"] for group in run("dead", "groups", "-q", "mail", "--json").objects] == ["mail"]
    assert len(run("dead", "groups", "--task", "shop.pay", "--json").objects) == 2


@pytest.mark.parametrize("group", ["shop.pay", "shop.pay/NO"])
def test_a_group_that_cannot_be_is_refused(store: Store, run: Run, group: str) -> None:
    store.dead()
    ran = run("dead", "ls", "--group", group)
    assert ran.code == 2
    assert "shop.send/3f9a1c2b44d0" in ran.err


@pytest.mark.every_engine(2)
def test_lists_take_filters(store: Store, run: Run) -> None:
    (dead,) = store.dead()
    (waits,) = store.put(task="shop.wait")
    (later,) = store.put(task="shop.later", delay=HOUR)

    def found(*options: str) -> list[str]:
        return [job["id"] for job in run("jobs", "ls", *options, "--json").objects]

    assert found("--worker", "host:1") == [show_id(dead)]
    assert found("--priority", "5", "--state", "ready") == [show_id(waits)]
    assert found("--priority", "4") == []
    assert found("--since", "1m", "--until", "0s") == [show_id(waits), show_id(dead)]
    assert found("--until", "1h") == []
    assert found("--since", "2020-01-01T00:00:00Z", "--state", "scheduled") == [show_id(later)]
    assert found("--until", "2020-01-01T00:00:00Z") == []
    assert found("--schedule", "nightly") == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--since", "yesterday"), "neither a moment such as"),
        (("--since", "2020-01-01T00:00:00"), "no time zone"),
        (("--since", "1m", "--until", "1h"), "begins before it ends"),
        (("--priority", "11"), "0<=x<=10"),
        (("--group", "a/b", "--state", "ready"), "only dead jobs have a group"),
    ],
)
def test_a_bad_filter_is_refused(store: Store, run: Run, options: tuple[str, ...], says: str) -> None:
    store.put()
    ran = run("jobs", "ls", *options)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.every_engine(2)
def test_scheduled_jobs_are_run_now(store: Store, run: Run) -> None:
    (one, _) = store.put(2, delay=HOUR)
    store.put(3, delay=HOUR, queue="mail")
    assert run("jobs", "run", show_id(one)).out == f"{show_id(one)} ready\n"
    assert store.states() == {"scheduled": 4, "ready": 1}
    ran = run("jobs", "run", "--queue", "mail", "--yes", "--json")
    assert ran.object == {"matched": 3, "answers": {"ready": 3}}
    assert run("jobs", "run").code == 2
    assert run("jobs", "run", "--all", "--yes").out == "1 job: ready\n"
    assert store.states() == {"ready": 5}


def test_only_what_is_scheduled_can_be_run_now(store: Store, run: Run) -> None:
    (done,) = store.completed()
    ran = run("jobs", "run", show_id(done))
    assert (ran.code, ran.err) == (1, f"{show_id(done)} finished\n")
