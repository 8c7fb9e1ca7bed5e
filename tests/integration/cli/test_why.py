"""`tidemill jobs why`, and the same reasons in `jobs show`."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.ids import new_id, show_id
from tidemill.model.queues.layers import Declaration
from tidemill.model.time import HOUR


@pytest.mark.row("F6")
def test_reasons_are_said_and_are_data(store: Store, run: Run) -> None:
    fields = {"concurrency": 2}
    said = {"default": Declaration(fields=fields, declared_at=1)}
    store.do(lambda engine: engine.queues.declare("shop", said))
    jobs = [show_id(job) for job in store.put(4)]
    store.take(most=2)
    (answer,) = run("jobs", "why", jobs[3], "--json").objects
    assert (answer["id"], answer["state"]) == (jobs[3], "ready")
    full, behind = answer["reasons"]
    assert (full["kind"], full["gate"], full["limit"], full["count"]) == ("gate full", "queue", 2, 2)
    assert sorted((holder["id"], holder["worker"]) for holder in full["holders"]) == sorted(
        (job, "host:1") for job in jobs[:2]
    )
    assert full["opens"][0] == {"what": "queue", "name": "default"}
    assert (behind["kind"], behind["count"], behind["more"]) == ("behind", 1, False)
    head, *lines = run("jobs", "why", jobs[3]).out.splitlines()
    assert head == f"{jobs[3]} ready, task shop.mail, queue default"
    assert lines == [f"    {reason['sentence']}" for reason in answer["reasons"]]
    shown = run("jobs", "show", jobs[3], "--json").object
    assert [reason["kind"] for reason in shown["why"]] == ["gate full", "behind"]
    assert lines == run("jobs", "show", jobs[3]).out.splitlines()[-2:]


def test_jobs_that_run_wait_or_are_not_there_are_answered(store: Store, run: Run) -> None:
    (running,) = store.put()
    store.take()
    (later,) = store.put(delay=HOUR)
    missing = new_id()
    ran = run("jobs", "why", *map(show_id, (running, missing, later)), "--json")
    assert ran.code == 1
    assert [answer["reasons"][0]["kind"] for answer in ran.objects] == ["running", "not due"]
    assert ran.objects[1]["reasons"][0]["until"] is not None
    assert "there is no such job" in ran.err
