"""The rules of the buffer."""

import pytest

from tests.unit.worker.builders import a_run
from tidemill.worker.claiming.buffer import SLOW, Ahead, Buffer, ahead_limit


@pytest.mark.parametrize(
    ("rate", "claim_s", "mean_ran", "limit"),
    [
        (10_000, 0.005, 10, 50),  # what ends while a claim is on its way
        (1_000_000, 0.1, 10, 100),  # never more than slots
        (100, 0.0001, 10, 1),  # rounded up: one round trip is hidden
        (0, 0.005, 0, 0),
        (10_000, 0.005, SLOW + 1, 0),  # slow jobs: a round trip is no loss worth hiding
        (10_000, 0.005, SLOW, 50),
    ],
)
def test_the_rule(rate: float, claim_s: float, mean_ran: float, limit: int) -> None:
    assert ahead_limit(100, rate, claim_s, mean_ran) == limit


def ended(ahead: Ahead, count: int, ran: int) -> None:
    runs = [a_run(number) for number in range(1, count + 1)]
    for run in runs:
        run.ran = ran
    ahead.ended(runs)


def test_nothing_is_claimed_ahead_before_anything_was_measured() -> None:
    assert Ahead(10).limit == 0


def test_it_follows_what_was_measured() -> None:
    ahead = Ahead(50)
    ended(ahead, 20, ran=100)
    ahead.trip(took_s=0.01, since_last_s=0.02)
    assert ahead.limit == 10
    for _ in range(20):
        ended(ahead, 20, ran=50_000)
        ahead.trip(took_s=0.01, since_last_s=0.02)
    assert ahead.limit == 0, "jobs have become slow"
    for _ in range(40):
        ended(ahead, 20, ran=100)
        ahead.trip(took_s=0.01, since_last_s=0.02)
    assert ahead.limit == 10


def test_an_idle_stretch_brings_it_down() -> None:
    ahead = Ahead(50)
    ended(ahead, 20, ran=100)
    ahead.trip(took_s=0.01, since_last_s=0.02)
    for _ in range(20):
        ahead.trip(took_s=0.001, since_last_s=5.0)
    assert ahead.limit <= 1


def test_the_most_urgent_comes_first_then_the_order_of_claims() -> None:
    buffer = Buffer()
    buffer.add([a_run(1, priority=9), a_run(2, priority=5), a_run(3, priority=5)])
    buffer.add([a_run(4, priority=0), a_run(5, priority=5)])
    assert [buffer.pop().fence for _ in range(len(buffer))] == [4, 2, 3, 5, 1]


def test_it_is_emptied_in_order_and_searched_by_fence() -> None:
    buffer = Buffer()
    runs = [a_run(1, priority=9, queue="a"), a_run(2, priority=1, queue="b"), a_run(3, priority=9, queue="a")]
    buffer.add(runs)
    assert buffer.of_queue("a") == 2
    assert buffer.find(3) is runs[2]
    buffer.remove(runs[2])
    assert buffer.find(3) is None
    assert [run.fence for run in buffer.empty()] == [2, 1]
    assert not buffer
