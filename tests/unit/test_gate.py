"""Gates: the log of a rate never lets too many through, and hardly ever too few."""

from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.queues.gate import (
    LEAST_MARGIN,
    MARGIN,
    START_DELAY,
    counts_until,
    margin_of,
    opens_at,
    permits_of,
    pressed,
    room_of,
    step_at,
    step_length,
    tolerance_of,
)
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.queues.starts import FREE, PRESSED, set_starts, start_rules
from tidemill.model.time import MILLISECOND, MINUTE, SECOND, Instant, Span
from tidemill.testing.contract.reference.gates import gates_of
from tidemill.testing.contract.reference.records import Gate

START: Instant = 1_700_000_000_000_001
rates = st.builds(
    Rate,
    st.integers(1, 20) | st.sampled_from([400, 5_000]),
    per=st.sampled_from([0.001, 0.0015, 0.25, 1.0, 1.2345, 10.0, 60.0, 86_400.0]),
    smooth=st.booleans(),
)


class Log:
    """A rate's log, kept as engines keep it."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.steps: Counter[Instant] = Counter()
        self.starts: list[Instant] = []

    def free(self, now: Instant) -> int:
        return room_of(self.rate, self.steps.items(), now)

    def start(self, count: int, now: Instant) -> None:
        if count:
            self.steps[step_at(self.rate, now)] += count
            self.starts += [now] * count

    def most_in_a_window(self) -> int:
        return most_in_a_window(self.starts, self.rate)


def most_in_a_window(starts: list[Instant], rate: Rate) -> int:
    """Windows that hold both their ends; it is enough to look at those that end with a start."""
    first, most, starts = 0, 0, sorted(starts)
    for index, now in enumerate(starts):
        while starts[first] < now - rate.window:
            first += 1
        most = max(most, index - first + 1)
    return most


def start_range(rate: Rate, log: Log, now: Instant) -> tuple[Span, Span]:
    """The earliest and the latest start of a run that was claimed now, after the claim."""
    rules = start_rules(QueueOptions(rate=rate))
    assert rules is not None
    job = a_claimed_job()
    set_starts([job], {"q": (rules, PRESSED if pressed(rate, log.steps.items(), now) else FREE)})
    assert job.start_within is not None
    return job.start_in, job.start_in + job.start_within


def a_claimed_job(task: str = "t", key: str | None = None) -> ClaimedJob:
    return ClaimedJob(
        b"0" * 16,
        1,
        1,
        task,
        "q",
        5,
        1,
        1,
        0,
        b"",
        None,
        key,
        None,
        None,
        START,
        START,
        0,
        False,
        True,
        None,
        None,
    )


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
    span = permits_of(rate).span
    while now < first + windows * span:
        free = log.free(now)
        if free > 0:
            log.start(min(free, batch), now)
        else:
            now = opens_at(rate, log.steps.items(), now)
    assert log.most_in_a_window() <= rate.count
    assert len(log.starts) >= 0.98 * windows * permits_of(rate).most


@given(
    rate=rates,
    moves=st.lists(
        st.tuples(st.floats(0, 1.2), st.integers(1, 25), st.floats(0, 1)), min_size=2, max_size=60
    ),
    offset=st.integers(0, 10_000),
    short=st.booleans(),
)
def test_no_window_holds_too_many_starts_wherever_in_its_range_each_run_starts(
    rate: Rate, moves: list[tuple[float, int, float]], offset: int, short: bool
) -> None:
    """Also if the last check is half a margin before the function's first line. `short`: gaps as long as the
    delay."""
    log, now, begun = Log(rate), START + offset, list[Instant]()
    reserve = margin_of(rate) - tolerance_of(rate) if not rate.smooth else margin_of(rate) // 3
    for gap, wanted, late in moves:
        now += round(gap * (START_DELAY if short else rate.window))
        count = min(wanted, max(0, log.free(now)))
        log.start(count, now)
        if count:
            earliest, latest = start_range(rate, log, now)
            begun += [now + round(earliest + late * (latest - earliest + reserve))] * count
    assert not begun or most_in_a_window(begun, rate) <= rate.count


@given(rate=rates, batch=st.integers(1, 20), lates=st.lists(st.floats(0, 1), min_size=5, max_size=50))
def test_under_pressure_no_window_holds_too_many_starts(rate: Rate, batch: int, lates: list[float]) -> None:
    log, now, begun = Log(rate), START, list[Instant]()
    for late in lates:
        if log.free(now) <= 0:
            now = opens_at(rate, log.steps.items(), now)
        count = min(batch if rate.count < 100 else rate.count, log.free(now))
        log.start(count, now)
        earliest, latest = start_range(rate, log, now)
        begun += [now + round(earliest + late * (latest - earliest))] * count
    assert most_in_a_window(begun, rate) <= rate.count


@pytest.mark.parametrize(
    ("rate", "margin"),
    [(Rate(100, per=60), 600), (Rate(20), 10), (Rate(50, per=10), 100), (Rate(5, per=0.1), 5)],
)
def test_the_margin_is_a_hundredth_of_the_window(rate: Rate, margin: int) -> None:
    assert margin_of(rate) == margin * MILLISECOND
    assert margin_of(rate) == max(LEAST_MARGIN, rate.window // MARGIN)


def test_a_rate_that_does_not_bind_costs_no_time() -> None:
    rate = Rate(20)
    log = Log(rate)
    for n in range(100):  # 19 a second
        now = START + n * SECOND // 18
        log.start(1, now)
        assert start_range(rate, log, now)[0] == 0


def test_a_rate_that_binds_delays_each_start_by_the_same() -> None:
    rate, log, now = Rate(20), Log(Rate(20)), START
    log.start(20, now)
    assert start_range(rate, log, now)[0] == 0
    now = opens_at(rate, log.steps.items(), now)
    log.start(20, now)
    assert start_range(rate, log, now) == (START_DELAY, START_DELAY + tolerance_of(rate))


def test_a_long_window_needs_no_delay() -> None:
    rate, log, now = Rate(100, per=60), Log(Rate(100, per=60)), START
    for _ in range(2):
        log.start(100, now)
        assert start_range(rate, log, now) == (0, 300 * MILLISECOND)
        now = opens_at(rate, log.steps.items(), now)


@pytest.mark.parametrize(
    ("rate", "count", "span"),
    [
        (Rate(100, per=60, smooth=True), 1, 606 * MILLISECOND),
        (Rate(1, per=60, smooth=True), 1, 60_600 * MILLISECOND),
        (Rate(20, smooth=True), 1, 50_500),
        (Rate(1_000, smooth=True), 3, 3_030),
    ],
)
def test_a_smooth_rate_gives_one_permit_after_the_other(rate: Rate, count: int, span: Span) -> None:
    assert permits_of(rate) == (count, span)


def test_jobs_are_under_a_rate_by_task_and_by_key() -> None:
    per_task = start_rules(QueueOptions(per_task={"mail": Limit(rate=Rate(5)), "sms": Limit(concurrency=2)}))
    per_key = start_rules(
        QueueOptions(
            per_key=Limit(rate=Rate(5)), limits={"gold": Limit(concurrency=9), "free": Limit(rate="1/m")}
        )
    )
    gold_alone = start_rules(QueueOptions(limits={"gold": Limit(rate=Rate(5))}))
    assert per_task is not None
    assert per_key is not None
    assert gold_alone is not None
    assert [per_task.bind(task, "k") for task in ("mail", "sms", "pdf")] == [True, False, False]
    assert [per_key.bind("t", key) for key in ("gold", "free", "silver", None)] == [False, True, True, True]
    assert [gold_alone.bind("t", key) for key in ("gold", "silver", None)] == [True, False, False]
    assert start_rules(QueueOptions(concurrency=5, per_task={"mail": Limit(concurrency=1)})) is None
    job = a_claimed_job("pdf")
    set_starts([job], {"q": (per_task, PRESSED)})
    assert (job.start_in, job.start_within) == (0, None)


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
    lowered = Rate(max(1, min(lower, len(log.starts))), per=rate.per)
    if room_of(lowered, log.steps.items(), now) > 0:
        return
    opens = opens_at(lowered, log.steps.items(), now)
    assert room_of(lowered, log.steps.items(), opens - 1) <= 0 < room_of(lowered, log.steps.items(), opens)


@given(rate=rates, now=st.integers(START, START + MINUTE))
def test_a_start_counts_for_its_span_and_at_most_two_steps_more(rate: Rate, now: Instant) -> None:
    step, span = step_at(rate, now), permits_of(rate).span
    assert step <= now < step + step_length(rate)
    assert now + span < counts_until(rate, step) <= now + span + 2 * step_length(rate)
    assert step_length(rate) == max(1, span // 1_000)


@pytest.mark.parametrize(("per", "length"), [(0.001, 6), (1.0, 1_010), (60.0, 60_600)])
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
