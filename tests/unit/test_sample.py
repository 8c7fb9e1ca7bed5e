"""Arrivals: what ended, and the change of stock, whenever the samples are taken."""

from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.stats.sample import LastSample, QueueSample, last_minute, sampled, stock_at_end
from tidemill.model.time import MINUTE, SECOND
from tidemill.model.view import Finished, QueueCounts

NOW = 1_000 * MINUTE + 2 * SECOND


def test_all_live_jobs_are_stock_and_what_ended_since_the_minute() -> None:
    window = Finished(completed=4, failed=100, died=3, cancelled=2)
    counts = QueueCounts(
        queue="q", blocked=10, scheduled=20, ready=30, running=40, completed=999, dead=999, window=window
    )
    assert stock_at_end(counts) == 100 + 9


def test_without_a_sample_before_nothing_is_known_of_arrivals() -> None:
    counts = QueueCounts(queue="q", ready=2, oldest_ready_at=NOW - SECOND)
    assert sampled([counts], None, NOW) == [QueueSample(queue="q", stock=2, oldest_ready=SECOND)]
    assert last_minute(NOW) == 999 * MINUTE


def test_a_queue_that_is_new_and_jobs_that_were_dropped() -> None:
    last = LastSample(stocks={"q": 9}, ended={})
    found = sampled([QueueCounts(queue="new", ready=2), QueueCounts(queue="q", ready=2)], last, NOW)
    assert [each.arrived for each in found] == [2, 0]


@given(st.lists(st.sampled_from(["arrive", "end", "minute", "sample"]), max_size=60))
def test_the_sum_of_arrivals_is_exact_whenever_samples_are_taken(events: list[str]) -> None:
    """A sample is of the minute that is over, and at most one is taken in a minute."""
    live = arrived = counted = minute = 0
    ended = {0: 0}
    last: tuple[int, int] | None = None
    sampled_in = -1
    for event in [*events, "minute", "sample"]:
        if event == "arrive":
            live, arrived = live + 1, arrived + 1
        elif event == "end" and live:
            live, ended[minute] = live - 1, ended[minute] + 1
        elif event == "minute":
            minute += 1
            ended[minute] = 0
        elif event == "sample" and sampled_in < minute:
            counts = QueueCounts(queue="q", ready=live, window=Finished(completed=ended[minute]))
            known = None
            if last is not None:
                since, stock = last
                known = LastSample(
                    stocks={"q": stock}, ended={"q": sum(ended[each] for each in range(since, minute))}
                )
            (found,) = sampled([counts], known, NOW)
            counted = arrived if found.arrived is None else counted + found.arrived
            last, sampled_in = (minute, found.stock), minute
            assert counted == arrived
