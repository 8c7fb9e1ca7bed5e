"""Histograms of waiting and run times: buckets, packed sums, percentiles and their error."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.stats.batch import (
    OTHER_TASKS,
    ROWS_LIMIT,
    TASKS_KEPT,
    StatsRow,
    check_rows,
    merged,
    whole_queues,
)
from tidemill.model.stats.histogram import (
    BUCKETS,
    CELLS,
    COUNT_LIMIT,
    ENDS,
    ERROR,
    GROWTH,
    RUN,
    Histogram,
    add_packed,
    bucket_of,
    check_packed,
    histogram_of,
    pack,
    pack_both,
    run_of,
    unpack,
    wait_of,
)
from tidemill.model.time import HOUR, MILLISECOND, SECOND

LENGTHS = st.lists(st.integers(MILLISECOND, 10 * HOUR), min_size=1, max_size=200)
COUNTS = st.dictionaries(st.integers(0, CELLS - 1), st.integers(1, COUNT_LIMIT - 1))
EACH_BUCKET = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1_000)).map(Histogram)


def test_the_buckets_reach_from_1_ms_to_10_hours() -> None:
    assert len(ENDS) == BUCKETS - 1
    assert ENDS[0] == MILLISECOND
    assert ENDS[-1] < 10 * HOUR < ENDS[-1] * GROWTH
    assert [bucket_of(length) for length in (0, 1, MILLISECOND, MILLISECOND + 1, 100 * HOUR)] == [
        0, 0, 0, 1, BUCKETS - 1,
    ]  # fmt: skip
    assert [bucket_of(end) for end in ENDS] == list(range(BUCKETS - 1))


@given(LENGTHS, st.floats(0, 1))
def test_a_percentile_is_at_most_its_error_off(lengths: list[int], share: float) -> None:
    true = sorted(lengths)[max(1, ceil(share * len(lengths))) - 1]
    found = histogram_of(lengths).percentile(share)
    assert found is not None
    # half a microsecond for each rounding
    assert (true - 1) / ERROR - 1 <= found <= (true + 1) * ERROR + 1


@given(LENGTHS)
def test_percentiles_are_in_order(lengths: list[int]) -> None:
    histogram = histogram_of(lengths)
    found = [histogram.percentile(share) or 0 for share in (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)]
    assert found == sorted(found)


def test_percentiles_at_the_edges() -> None:
    assert Histogram().percentile(0.5) is None
    assert histogram_of([0, 5, 900]).percentile(1) == MILLISECOND
    assert 8 * HOUR < (histogram_of([100 * HOUR]).percentile(0) or 0) < 9 * HOUR
    half = histogram_of([MILLISECOND] * 50 + [SECOND] * 50)
    assert half.percentile(0.5) == MILLISECOND
    assert (half.percentile(0.51) or 0) > SECOND / ERROR - 1
    for wrong in (95, -0.1, float("nan")):
        with pytest.raises(BadInput, match=r"0\.95 for p95"):
            half.percentile(wrong)


@given(EACH_BUCKET, EACH_BUCKET)
def test_both_histograms_survive_packing(wait: Histogram, run: Histogram) -> None:
    packed = pack_both(wait, run)
    check_packed(packed)
    cells = dict(unpack(packed))
    assert (wait_of(cells), run_of(cells)) == (wait, run)


@given(st.lists(COUNTS, max_size=5))
def test_packed_sums_are_the_sums(several: list[dict[int, int]]) -> None:
    sums = dict(unpack(add_packed(*map(pack, several))))
    assert sums == {cell: sum(counts.get(cell, 0) for counts in several) for cell in set().union(*several)}


@given(EACH_BUCKET, EACH_BUCKET)
def test_adding_is_counting_together(one: Histogram, other: Histogram) -> None:
    assert one + other == other + one
    assert (one + other).count == one.count + other.count
    assert one + Histogram() == one


@pytest.mark.parametrize(
    "wrong",
    [(CELLS | 128,), (5,), (-128,), (128, 128), (1 << 60,), (True,), ("x",), [128], None, (128,) * 100],
)
def test_what_is_no_packed_histogram_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        check_packed(wrong)


def row(queue: str, task: str, count: int = 1) -> StatsRow:
    return StatsRow(queue, task, pack({RUN: count}))


def test_rows_of_one_task_are_merged_and_the_busiest_come_first() -> None:
    rows = [row("q", "a"), row("q", "b", 5), row("p", "a", 3), row("q", "a"), row("q", OTHER_TASKS, 9)]
    assert merged(rows) == [row("q", "b", 5), row("p", "a", 3), row("q", "a", 2), row("q", OTHER_TASKS, 9)]
    assert whole_queues(rows) == [row("q", "", 16), row("p", "", 3)]


def test_more_tasks_than_are_kept_are_the_others_of_their_queue() -> None:
    rows = [row("q", f"busy{n}", 9) for n in range(TASKS_KEPT)]
    rows += [row(queue, f"rare{n}") for n in range(30) for queue in "qp"]
    found = merged(rows)
    assert {each.task for each in found[:TASKS_KEPT]} == {f"busy{n}" for n in range(TASKS_KEPT)}
    assert sorted(found[TASKS_KEPT:], key=lambda each: each.queue) == [
        row("p", OTHER_TASKS, 30),
        row("q", OTHER_TASKS, 30),
    ]
    check_rows(found)


def test_a_batch_is_bounded() -> None:
    found = merged([row(f"q{n}", f"t{n}") for n in range(3 * ROWS_LIMIT)])
    assert len(found) == ROWS_LIMIT
    check_rows(found)
    with pytest.raises(BadInput, match="at most"):
        check_rows([*found, row("q", "t")])
