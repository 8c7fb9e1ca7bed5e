"""What a claim asks for."""

from typing import Any

import pytest

from tests.unit.worker.builders import a_job
from tidemill.model.jobs.run import Want
from tidemill.model.queues.queue import Limit, Rate
from tidemill.task.registry import Registry
from tidemill.worker.claiming.claim_size import ClaimBounds, ClaimSize, PerWorker


def here(_: str) -> int:
    return 0


def test_without_limits_every_queue_may_give_everything() -> None:
    size = ClaimSize(("a", "b"), Registry())
    assert size.queues(0, here, 0.0) == (Want("a"), Want("b"))


def test_queues_whose_jobs_cannot_wait_are_asked_for_the_free_slots_only() -> None:
    size = ClaimSize(("a", "b"), Registry())
    size.came([a_job(queue="a", limited=True), a_job(queue="b")], 0.0)
    assert size.queues(3, here, 0.0) == (Want("a", 3), Want("b"))
    assert size.queues(0, here, 0.0) == (Want("b"),)
    size.came([a_job(queue="a", limited=False)], 0.0)  # an operator lifted the limit
    assert size.queues(0, here, 0.0) == (Want("a"), Want("b"))


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 3},
        {"rate": Rate(3, per=1)},
        {"per_key": Limit(concurrency=1)},
        {"fair_by": "key"},
        {"per_task": {"task": Limit(concurrency=1)}},
    ],
    ids=repr,
)
def test_what_the_app_declares_is_known_from_the_start(options: dict[str, Any]) -> None:
    registry = Registry()
    registry.declare("a", options)
    assert ClaimSize(("a", "b"), registry).queues(3, here, 0.0) == (Want("a", 3), Want("b"))


def of_three(*, limited: str) -> ClaimSize:
    size = ClaimSize(("a", "b", "c"), Registry())
    size.came([a_job(queue=queue, limited=True) for queue in limited], 0.0)
    return size


def bounds_of(size: ClaimSize, *, free: int, ahead: int, suspects: int = 0) -> ClaimBounds:
    most = size.room(free, ahead)
    return size.fit(ClaimBounds(size.queues(free, here, 0.0), most, suspects), free)


def test_without_limits_as_many_are_asked_for_as_there_is_room() -> None:
    size = of_three(limited="")
    assert bounds_of(size, free=0, ahead=7).most == 7
    assert bounds_of(size, free=3, ahead=7, suspects=1) == ClaimBounds(
        (Want("a"), Want("b"), Want("c")), most=10, suspects=1
    )


@pytest.mark.parametrize("limited", ["abc", "ab", "a"])
def test_beside_queues_that_give_what_cannot_wait_nothing_is_claimed_ahead(limited: str) -> None:
    size = of_three(limited=limited)
    assert size.room(0, 7) == 0, "the others would take every slot that becomes free"
    assert size.room(3, 7) == 3
    for _ in range(3):  # nor while it goes on
        got = bounds_of(size, free=3, ahead=7, suspects=1)
        assert (got.most, got.suspects) == (3, 1)
        assert all(want.most == 3 for want in got.wants if want.queue in limited)
        size.came([a_job(queue="a", limited=True), a_job(queue="c", limited="c" in limited)], 0.0)
        assert not size.cut_short


@pytest.mark.parametrize("suspects", [0, 1])
@pytest.mark.parametrize("free", range(1, 8))
def test_when_those_give_nothing_others_may_wait_and_each_job_that_cannot_finds_a_slot(
    free: int, suspects: int
) -> None:
    size = of_three(limited="ab")
    size.came([a_job(queue="c")], 0.0)
    got = bounds_of(size, free=free, ahead=5, suspects=suspects)
    bounds = [want.most or 0 for want in got.wants if want.queue != "c"]
    assert [want.queue for want in got.wants] == ["a", "b", "c"], "everybody is asked"
    assert got.suspects == suspects
    assert got.most in (free, free + 5)
    assert got.most == free or sum(bounds) + suspects <= free
    if free >= 3:
        assert got.most == free + 5


def test_when_all_cannot_wait_and_give_nothing_they_are_not_cut() -> None:
    size = of_three(limited="abc")
    size.came([], 0.0)
    assert bounds_of(size, free=4, ahead=5) == ClaimBounds((Want("a", 4), Want("b", 4), Want("c", 4)), 4, 0)


def test_a_queue_that_gave_of_its_share_is_asked_again_for_all_slots() -> None:
    size = of_three(limited="ab")
    size.came([], 0.0)
    assert bounds_of(size, free=4, ahead=5).wants == (Want("a", 2), Want("b", 2), Want("c"))
    size.came([a_job(queue="a", limited=True)] * 2, 0.0)
    assert size.cut_short
    assert bounds_of(size, free=2, ahead=5) == ClaimBounds((Want("a", 2), Want("b", 2), Want("c")), 2, 0)
    size.came([a_job(queue="a", limited=True)] * 2, 0.0)
    assert not size.cut_short


def test_a_workers_own_concurrency_counts_what_it_has() -> None:
    registry = Registry()
    registry.declare("a", {"per_worker": Limit(concurrency=3)})
    size = ClaimSize(("a", "b"), registry)
    assert size.queues(9, lambda _: 1, 0.0) == (Want("a", 2), Want("b"))
    assert size.queues(9, lambda _: 5, 0.0) == (Want("b"),)


def test_a_workers_own_rate_opens_with_time() -> None:
    registry = Registry()
    registry.declare("a", {"per_worker": Limit(rate=Rate(4, per=10))})
    size = ClaimSize(("a",), registry)
    assert size.opens_at() is None
    size.came([a_job(queue="a") for _ in range(3)], 100.0)
    assert size.queues(9, here, 101.0) == (Want("a", 1),)
    size.came([a_job(queue="a")], 105.0)
    assert size.queues(9, here, 106.0) == ()
    assert size.opens_at() == 110.1  # the window and its margin
    assert size.queues(9, here, 110.1) == (Want("a", 3),)


def test_the_smaller_of_both_counts() -> None:
    limit = PerWorker(Limit(concurrency=5, rate=Rate(2, per=1)))
    assert limit.room(0, 0.0) == 2
    assert limit.room(4, 0.0) == 1
