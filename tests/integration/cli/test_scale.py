"""`tidemill scale`."""

import pytest

from tests.integration.cli.conftest import Run
from tests.integration.cli.store import Store
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import configure


@pytest.mark.row("F13")
@pytest.mark.every_engine
def test_a_scaler_reads_one_number_from_one_document(store: Store, run: Run) -> None:
    store.put(40)
    store.put(7, queue="mail")
    store.do(lambda engine: configure(engine, "narrow", QueueOptions(concurrency=2)))
    store.put(100, queue="narrow")
    store.do(lambda engine: engine.queues.pause("mail"))
    found = run("scale", "--slots-per-worker", "10", "--json").object
    assert found["workers"] == 5
    assert {one["queue"]: (one["workers"], one["startable"]) for one in found["queues"]} == {
        "default": (4, 40),
        "mail": (0, 0),
        "narrow": (1, 2),
    }
    store.take(most=3)
    one = run("scale", "default", "--json").object
    assert one["workers"] == 14, "the worker that is there has three slots"
    assert [queue["queue"] for queue in one["queues"]] == ["default"]


def test_people_get_a_table_with_a_sum(store: Store, run: Run) -> None:
    store.put(12)
    store.put(1, queue="mail")
    store.do(lambda engine: engine.queues.pause("mail"))
    head, default, mail, total = run("scale").out.splitlines()
    assert head.split()[-2:] == ["WORKERS", "WANTED"]
    assert default.split() == ["default", "12", "12", "0", "12", "0", "2"]
    assert mail.split()[:2] == ["mail", "(paused)"]
    assert total.split() == ["(all)", "13", "12", "0", "12", "0", "2"]


def test_a_queue_that_is_not_there_is_named_with_the_nearest(store: Store, run: Run) -> None:
    store.put(1)
    ran = run("scale", "defualt")
    assert ran.code != 0
    assert "did you mean 'default'" in ran.err
