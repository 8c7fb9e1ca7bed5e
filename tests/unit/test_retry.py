"""The arithmetic of waiting."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.jobs.retry import ATTEMPTS_LIMIT, Retry
from tidemill.model.time import SECOND

seconds = st.floats(min_value=0, max_value=1e6, allow_nan=False)


@pytest.mark.row("A6")
@pytest.mark.parametrize(
    ("base", "cap", "table"),
    [
        (2, 30, [2, 4, 8, 16, 30, 30]),
        (10, 300, [10, 20, 40]),
        (1, 300, [1, 2, 4, 8, 16]),
    ],
)
def test_the_ceiling_doubles_up_to_the_cap(base: float, cap: float, table: list[int]) -> None:
    plain = Retry(base=base, cap=cap, jitter="none")
    full = Retry(base=base, cap=cap)
    failed = range(1, len(table) + 1)
    assert [plain.wait(k) / SECOND for k in failed] == table
    assert [full.ceiling(k) / SECOND for k in failed] == table
    assert [full.wait(k, draw=1.0) / SECOND for k in failed] == table


@pytest.mark.row("A6")
@given(base=seconds, cap=seconds, failed=st.integers(1, ATTEMPTS_LIMIT), draw=st.floats(0, 1))
def test_full_jitter_stays_between_nothing_and_the_ceiling(
    base: float, cap: float, failed: int, draw: float
) -> None:
    retry = Retry(base=base, cap=cap)
    assert 0 <= retry.wait(failed) <= retry.ceiling(failed)
    assert 0 <= retry.wait(failed, draw) <= retry.ceiling(failed)
    assert retry.wait(failed, 0.0) == 0
    assert retry.wait(failed, 1.0) == retry.ceiling(failed)


@pytest.mark.row("A6")
def test_full_jitter_is_spread_over_the_whole_range() -> None:
    retry = Retry(base=100)
    tenths = {retry.wait(1) // (10 * SECOND) for _ in range(2_000)}
    assert tenths >= set(range(10))


@given(base=seconds, cap=seconds, failed=st.integers(1, 200))
def test_the_ceiling_never_falls_and_never_passes_the_cap(base: float, cap: float, failed: int) -> None:
    retry = Retry(base=base, cap=cap)
    assert retry.ceiling(failed) <= retry.ceiling(failed + 1) <= round(cap * SECOND)


@given(failed=st.integers(1, ATTEMPTS_LIMIT))
def test_fixed_waits_the_same_each_time(failed: int) -> None:
    assert Retry(backoff="fixed", base=7, cap=1, jitter="none").wait(failed) == 7 * SECOND


@pytest.mark.parametrize(
    "options",
    [
        {"attempts": 0},
        {"attempts": ATTEMPTS_LIMIT + 1},
        {"backoff": "linear"},
        {"jitter": "some"},
        {"base": -1.0},
        {"base": float("nan")},
        {"cap": float("inf")},
        {"cap": "5"},
    ],
)
def test_nonsense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Retry(**options)


def test_a_wait_needs_a_failed_attempt() -> None:
    with pytest.raises(BadInput, match="there were 0"):
        Retry().ceiling(0)


@pytest.mark.parametrize(
    ("retry", "failed", "lineage", "again"),
    [
        (Retry(attempts=3), 2, ["builtins.ValueError"], True),
        (Retry(attempts=3), 3, ["builtins.ValueError"], False),
        (Retry(attempts=1), 1, [], False),
        (Retry(on=("builtins.OSError",)), 1, ["builtins.ValueError"], False),
        (Retry(on=("builtins.OSError",)), 1, ["builtins.TimeoutError", "builtins.OSError"], True),
        (Retry(give_up=("builtins.OSError",)), 1, ["builtins.TimeoutError", "builtins.OSError"], False),
        (Retry(on=("a.A",), give_up=("a.B",)), 1, ["a.A", "a.B"], False),
    ],
)
def test_who_is_tried_again(retry: Retry, failed: int, lineage: list[str], again: bool) -> None:
    assert retry.retries(failed, lineage) is again
