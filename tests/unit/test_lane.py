"""Lanes: groups, whose turn it is, and weighted sharing."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.queues.lane import (
    Lane,
    check_priority,
    group_of,
    key_of,
    take_turns,
    turn_order,
    weight_of,
)
from tidemill.model.queues.queue import Limit, QueueOptions

PLAIN = QueueOptions()
FAIR = QueueOptions(fair_by="key", weights={"gold": 3})
LIMITED = QueueOptions(per_task={"mail": Limit(concurrency=1), "free": Limit()})
BOTH = QueueOptions(
    per_key=Limit(concurrency=1), per_task={"mail": Limit(concurrency=1)}, weights={"gold": 3}
)

keys = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), max_size=5)
groups = st.lists(st.text("abc", max_size=2), unique=True)


@pytest.mark.parametrize("priority", range(11))
def test_priorities_go_from_0_to_10(priority: int) -> None:
    assert check_priority(priority) == priority


@pytest.mark.parametrize("priority", [-1, 11, True, 5.0, "5", None])
def test_other_priorities_are_refused(priority: int) -> None:
    with pytest.raises(BadInput, match="from 0"):
        check_priority(priority)


def test_only_a_keyed_queue_has_a_lane_per_key() -> None:
    assert group_of(PLAIN, "mail", "gold") == ""
    assert group_of(FAIR, "mail", "gold") == "gold"
    assert group_of(FAIR, "mail", None) == ""


def test_only_a_limited_task_has_lanes_of_its_own() -> None:
    assert group_of(LIMITED, "other", "gold") == group_of(LIMITED, "free", "gold") == ""
    assert group_of(LIMITED, "mail", "gold") not in ("", "mail")
    assert len({group_of(BOTH, task, key) for task in ("mail", "other") for key in (None, "a", "b")}) == 6


@given(task=st.sampled_from(["mail", "other"]), key=st.none() | keys)
def test_a_group_carries_its_key(task: str, key: str | None) -> None:
    assert key_of(group_of(FAIR, task, key)) == (key or "")
    assert key_of(group_of(BOTH, task, key)) == (key or "")
    assert key_of(group_of(LIMITED, task, key)) == ""


def test_the_weight_of_a_lane_is_the_weight_of_its_key() -> None:
    for options in (FAIR, BOTH):
        assert weight_of(options, group_of(options, "mail", "gold")) == 3
        assert weight_of(options, group_of(options, "mail", "tin")) == 1
        assert weight_of(options, group_of(options, "mail", None)) == 1


def test_lanes_are_ordered_by_queue_priority_and_group() -> None:
    first, second, third, fourth = Lane("a", 1, "z"), Lane("a", 2, ""), Lane("a", 2, "b"), Lane("b", 0, "")
    assert sorted([fourth, second, third, first]) == [first, second, third, fourth]


@given(groups=groups, last=st.none() | st.text("abc", max_size=2))
def test_turns_begin_after_the_last_one_served(groups: list[str], last: str | None) -> None:
    order = turn_order(groups, last)
    assert sorted(order) == sorted(groups)
    assert sorted(order, key=lambda group: (last is not None and group <= last, group)) == order
    if last in groups:
        assert order[-1] == last


@given(groups=groups.filter(bool), rounds=st.integers(1, 4))
def test_over_many_claims_of_one_job_each_group_gets_the_same(groups: list[str], rounds: int) -> None:
    last: str | None = None
    served: Counter[str] = Counter()
    for _ in range(rounds * len(groups)):
        last = turn_order(groups, last)[0]
        served[last] += 1
    assert served == dict.fromkeys(groups, rounds)


lanes = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 30)), max_size=6)


@given(lanes=lanes)
def test_every_job_is_taken_once_and_each_lane_in_order(lanes: list[tuple[int, int]]) -> None:
    taken = list(take_turns([(weight, iter(range(jobs))) for weight, jobs in lanes]))
    for index, (_, jobs) in enumerate(lanes):
        assert [job for lane, job in taken if lane == index] == list(range(jobs))
    assert len(taken) == sum(jobs for _, jobs in lanes)


@given(lanes=lanes, most=st.integers(0, 100))
def test_lanes_share_by_weight_while_they_have_jobs(lanes: list[tuple[int, int]], most: int) -> None:
    turns = take_turns([(weight, iter(range(jobs))) for weight, jobs in lanes])
    taken = Counter(lane for (lane, _), _ in zip(turns, range(most), strict=False))
    still_open = [
        (taken[index] / weight) for index, (weight, jobs) in enumerate(lanes) if taken[index] < jobs
    ]
    # lanes with jobs left have had the same number of full turns, give or take the one that is going on
    assert not still_open or max(still_open) - min(still_open) <= 1


@given(lanes=lanes)
def test_a_turn_is_as_long_as_the_weight(lanes: list[tuple[int, int]]) -> None:
    order = [lane for lane, _ in take_turns([(weight, iter(range(jobs))) for weight, jobs in lanes])]
    expected: list[int] = []
    left = [jobs for _, jobs in lanes]
    while any(left):
        for index, (weight, _) in enumerate(lanes):
            now = min(weight, left[index])
            left[index] -= now
            expected += [index] * now
    assert order == expected


def test_a_job_that_nobody_takes_is_not_asked_for() -> None:
    asked: list[str] = []

    def lane(name: str) -> Iterator[str]:
        for number in range(10):
            asked.append(f"{name}{number}")
            yield asked[-1]

    turns = take_turns([(2, lane("a")), (1, lane("b"))])
    assert asked == []
    assert [next(turns)[1] for _ in range(4)] == ["a0", "a1", "b0", "a2"]
    assert asked == ["a0", "a1", "b0", "a2"]


def test_a_lane_that_had_nothing_to_give_is_not_asked_again() -> None:
    asked = Counter[str]()

    def full_gate() -> Iterator[int]:
        asked["full"] += 1
        return
        yield

    assert len(list(take_turns([(1, full_gate()), (1, iter(range(5)))]))) == 5
    assert asked["full"] == 1
