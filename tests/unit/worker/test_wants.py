"""What a claim asks for."""

from penstock.model.queue import Limit, QueueOptions, Rate
from penstock.model.run import Want
from penstock.task.registry import Registry
from penstock.worker.wants import PerWorker, Wants
from tests.unit.worker.builders import a_job


def here(_: str) -> int:
    return 0


def test_without_limits_every_queue_may_give_everything() -> None:
    wants = Wants(("a", "b"), Registry())
    assert wants.ask(0, here, 0.0) == (Want("a"), Want("b"))


def test_queues_whose_jobs_cannot_wait_are_asked_for_the_free_slots_only() -> None:
    wants = Wants(("a", "b"), Registry())
    wants.came([a_job(queue="a", limited=True), a_job(queue="b")], 0.0)
    assert wants.ask(3, here, 0.0) == (Want("a", 3), Want("b"))
    assert wants.ask(0, here, 0.0) == (Want("b"),)
    wants.came([a_job(queue="a", limited=False)], 0.0)  # an operator lifted the limit
    assert wants.ask(0, here, 0.0) == (Want("a"), Want("b"))


def test_a_workers_own_concurrency_counts_what_it_has() -> None:
    registry = Registry()
    registry.declare("a", QueueOptions(per_worker=Limit(concurrency=3)))
    wants = Wants(("a", "b"), registry)
    assert wants.ask(9, lambda _: 1, 0.0) == (Want("a", 2), Want("b"))
    assert wants.ask(9, lambda _: 5, 0.0) == (Want("b"),)


def test_a_workers_own_rate_opens_with_time() -> None:
    registry = Registry()
    registry.declare("a", QueueOptions(per_worker=Limit(rate=Rate(4, per=10))))
    wants = Wants(("a",), registry)
    assert wants.opens_at() is None
    wants.came([a_job(queue="a") for _ in range(3)], 100.0)
    assert wants.ask(9, here, 101.0) == (Want("a", 1),)
    wants.came([a_job(queue="a")], 105.0)
    assert wants.ask(9, here, 106.0) == ()
    assert wants.opens_at() == 110.0
    assert wants.ask(9, here, 110.0) == (Want("a", 3),)


def test_the_smaller_of_both_counts() -> None:
    limit = PerWorker(Limit(concurrency=5, rate=Rate(2, per=1)))
    assert limit.room(0, 0.0) == 2
    assert limit.room(4, 0.0) == 1
