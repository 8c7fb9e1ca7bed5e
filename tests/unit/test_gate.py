"""Gates: the log of a rate never lets too many through, and hardly ever too few."""

from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.queues.gate import counts_until, opens_at, step_at, step_length
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import MILLISECOND, MINUTE, SECOND, Instant
from tidemill.testing.contract.reference.gates import gates_of, permits
from tidemill.testing.contract.reference.records import Gate

START: Instant = 1_700_000_000_000_001
rates = st.builds(
    Rate, st.integers(1, 20), per=st.sampled_from([0.001, 0.0015, 0.25, 1.0, 1.2345, 10.0, 60.0, 86_400.0])
)


class Log:
    """A rate's log, kept as engines keep it."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.steps: Counter[Instant] = Counter()
        self.starts: list[Instant] = []

    def free(self, now: Instant) -> int:
        return permits(self.rate, self.steps.items(), now)

    def start(self, count: int, now: Instant) -> None:
        if count:
            self.steps[step_at(self.rate, now)] += count
            self.starts += [now] * count

    def most_in_a_window(self) -> int:
        """Windows that hold both their ends; it is enough to look at those that end with a start."""
        window, first, most = self.rate.window, 0, 0
        for index, now in enumerate(self.starts):
            while self.starts[first] < now - window:
                first += 1
            most = max(most, index - first + 1)
        return most


@given(
    rate=rates,
    moves=st.lists(st.tuples(st.floats(0, 1.2), st.integers(0, 25)), max_size=60),
    offset=st.integers(0, 10_000),
)
def test_no_window_ever_holds_more_than_the_rate_allows(
    rate: Rate, moves: list[tuple[float, int]], offset: int
) -> None:
    log = Log(rate)
    moments = accumulate((round(gap * rate.window) for gap, _ in moves), initial=START + offset)
    for now, (_, wanted) in zip(moments, moves, strict=False):
        log.start(min(wanted, log.free(now)), now)
    assert log.most_in_a_window() <= rate.count


@given(rate=rates, offset=st.integers(0, 10_000), batch=st.integers(1, 20))
def test_under_pressure_nearly_all_of_the_rate_is_used(rate: Rate, offset: int, batch: int) -> None:
    log, first = Log(rate), START + offset
    now, windows = first, 20
    while now < first + windows * rate.window:
        free = log.free(now)
        if free > 0:
            log.start(min(free, batch), now)
        else:
            now = opens_at(rate, log.steps.items(), now)
    assert log.most_in_a_window() <= rate.count
    assert len(log.starts) >= 0.98 * windows * rate.count


@given(rate=rates, gaps=st.lists(st.floats(0, 0.4), min_size=1, max_size=40))
def test_a_full_gate_opens_at_the_very_microsecond_it_says(rate: Rate, gaps: list[float]) -> None:
    log, now = Log(rate), START
    for gap in gaps:
        now += round(gap * rate.window)
        if log.free(now) <= 0:
            break
        log.start(1, now)
    else:
        log.start(log.free(now), now)
    opens = opens_at(rate, log.steps.items(), now)
    assert opens > now
    assert log.free(opens - 1) <= 0 < log.free(opens)


@given(rate=rates, lower=st.integers(1, 20), gaps=st.lists(st.floats(0, 0.1), min_size=1, max_size=20))
def test_a_rate_that_was_lowered_opens_when_enough_has_expired(
    rate: Rate, lower: int, gaps: list[float]
) -> None:
    log, now = Log(rate), START
    for gap in gaps:
        now += round(gap * rate.window)
        log.start(min(1, max(0, log.free(now))), now)
    lowered = Rate(min(lower, len(log.starts)), per=rate.per)
    if permits(lowered, log.steps.items(), now) > 0:
        return
    opens = opens_at(lowered, log.steps.items(), now)
    assert permits(lowered, log.steps.items(), opens - 1) <= 0 < permits(lowered, log.steps.items(), opens)


@given(rate=rates, now=st.integers(START, START + MINUTE))
def test_a_start_counts_for_a_window_and_at_most_two_steps_more(rate: Rate, now: Instant) -> None:
    step = step_at(rate, now)
    assert step <= now < step + step_length(rate)
    assert now + rate.window < counts_until(rate, step) <= now + rate.window + 2 * step_length(rate)
    assert step_length(rate) <= rate.window / 1_000


@pytest.mark.parametrize(("per", "length"), [(0.001, 1), (1.0, MILLISECOND), (60.0, 60 * MILLISECOND)])
def test_a_window_has_a_thousand_steps(per: float, length: int) -> None:
    assert step_length(Rate(1, per=per)) == length


def test_a_job_passes_at_most_three_gates_the_widest_first() -> None:
    options = QueueOptions(
        rate=Rate(1), per_task={"mail": Limit(concurrency=1), "free": Limit()}, per_key=Limit(concurrency=1)
    )
    own, mail, gold = Gate("q", "queue"), Gate("q", "task", "mail"), Gate("q", "key", "gold")
    assert gates_of("q", options, "mail", "gold") == [own, mail, gold]
    assert gates_of("q", options, "free", None) == [own, Gate("q", "key", "")]
    assert gates_of("q", QueueOptions(fair_by="key"), "mail", "gold") == []
    assert gates_of("q", QueueOptions(concurrency=1), "mail", "gold") == [own]


def test_the_spent_permits_of_a_second_come_back_one_by_one() -> None:
    rate, log = Rate(2), Log(Rate(2))
    log.start(1, START)
    log.start(1, START + SECOND // 2)
    assert log.free(START + SECOND // 2) == 0
    first = counts_until(rate, step_at(rate, START))
    assert [log.free(first - 1), log.free(first)] == [0, 1]
    assert log.free(first + SECOND // 2) == 2
