"""What a claim asks for."""

import pytest

from tests.unit.worker.builders import a_job
from tidemill.model.jobs.run import Want
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.task.registry import Registry
from tidemill.worker.claiming.claim_size import ClaimBounds, ClaimSize, PerWorker


def here(_: str) -> int:
    return 0


def test_without_limits_every_queue_may_give_everything() -> None:
    wants = ClaimSize(("a", "b"), Registry())
    assert wants.ask(0, here, 0.0) == (Want("a"), Want("b"))


def test_queues_whose_jobs_cannot_wait_are_asked_for_the_free_slots_only() -> None:
    wants = ClaimSize(("a", "b"), Registry())
    wants.came([a_job(queue="a", limited=True), a_job(queue="b")], 0.0)
    assert wants.ask(3, here, 0.0) == (Want("a", 3), Want("b"))
    assert wants.ask(0, here, 0.0) == (Want("b"),)
    wants.came([a_job(queue="a", limited=False)], 0.0)  # an operator lifted the limit
    assert wants.ask(0, here, 0.0) == (Want("a"), Want("b"))


@pytest.mark.parametrize(
    "options",
    [
        QueueOptions(concurrency=3),
        QueueOptions(rate=Rate(3, per=1)),
        QueueOptions(per_key=Limit(concurrency=1)),
        QueueOptions(fair_by="key"),
        QueueOptions(per_task={"task": Limit(concurrency=1)}),
    ],
    ids=repr,
)
def test_what_the_app_declares_is_known_from_the_start(options: QueueOptions) -> None:
    registry = Registry()
    registry.declare("a", options)
    assert ClaimSize(("a", "b"), registry).ask(3, here, 0.0) == (Want("a", 3), Want("b"))


def of_three(*, limited: str) -> ClaimSize:
    wants = ClaimSize(("a", "b", "c"), Registry())
    wants.came([a_job(queue=queue, limited=True) for queue in limited], 0.0)
    return wants


def asked(wants: ClaimSize, *, free: int, ahead: int, suspects: int = 0) -> ClaimBounds:
    most = wants.room(free, ahead)
    return wants.fit(ClaimBounds(wants.ask(free, here, 0.0), most, suspects), free)


def test_without_limits_as_many_are_asked_for_as_there_is_room() -> None:
    wants = of_three(limited="")
    assert asked(wants, free=0, ahead=7).most == 7
    assert asked(wants, free=3, ahead=7, suspects=1) == ClaimBounds(
        (Want("a"), Want("b"), Want("c")), most=10, suspects=1
    )


@pytest.mark.parametrize("limited", ["abc", "ab", "a"])
def test_beside_queues_that_give_what_cannot_wait_nothing_is_claimed_ahead(limited: str) -> None:
    wants = of_three(limited=limited)
    assert wants.room(0, 7) == 0, "the others would take every slot that becomes free"
    assert wants.room(3, 7) == 3
    for _ in range(3):  # nor while it goes on
        ask = asked(wants, free=3, ahead=7, suspects=1)
        assert (ask.most, ask.suspects) == (3, 1)
        assert all(want.most == 3 for want in ask.wants if want.queue in limited)
        wants.came([a_job(queue="a", limited=True), a_job(queue="c", limited="c" in limited)], 0.0)
        assert not wants.cut_short


@pytest.mark.parametrize("suspects", [0, 1])
@pytest.mark.parametrize("free", range(1, 8))
def test_when_those_give_nothing_others_may_wait_and_each_job_that_cannot_finds_a_slot(
    free: int, suspects: int
) -> None:
    wants = of_three(limited="ab")
    wants.came([a_job(queue="c")], 0.0)
    ask = asked(wants, free=free, ahead=5, suspects=suspects)
    bounds = [want.most or 0 for want in ask.wants if want.queue != "c"]
    assert [want.queue for want in ask.wants] == ["a", "b", "c"], "everybody is asked"
    assert ask.suspects == suspects
    assert ask.most in (free, free + 5)
    assert ask.most == free or sum(bounds) + suspects <= free
    if free >= 3:
        assert ask.most == free + 5


def test_when_all_cannot_wait_and_give_nothing_they_are_not_cut() -> None:
    wants = of_three(limited="abc")
    wants.came([], 0.0)
    assert asked(wants, free=4, ahead=5) == ClaimBounds((Want("a", 4), Want("b", 4), Want("c", 4)), 4, 0)


def test_a_queue_that_gave_of_its_share_is_asked_again_for_all_slots() -> None:
    wants = of_three(limited="ab")
    wants.came([], 0.0)
    assert asked(wants, free=4, ahead=5).wants == (Want("a", 2), Want("b", 2), Want("c"))
    wants.came([a_job(queue="a", limited=True)] * 2, 0.0)
    assert wants.cut_short
    assert asked(wants, free=2, ahead=5) == ClaimBounds((Want("a", 2), Want("b", 2), Want("c")), 2, 0)
    wants.came([a_job(queue="a", limited=True)] * 2, 0.0)
    assert not wants.cut_short


def test_a_workers_own_concurrency_counts_what_it_has() -> None:
    registry = Registry()
    registry.declare("a", QueueOptions(per_worker=Limit(concurrency=3)))
    wants = ClaimSize(("a", "b"), registry)
    assert wants.ask(9, lambda _: 1, 0.0) == (Want("a", 2), Want("b"))
    assert wants.ask(9, lambda _: 5, 0.0) == (Want("b"),)


def test_a_workers_own_rate_opens_with_time() -> None:
    registry = Registry()
    registry.declare("a", QueueOptions(per_worker=Limit(rate=Rate(4, per=10))))
    wants = ClaimSize(("a",), registry)
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
