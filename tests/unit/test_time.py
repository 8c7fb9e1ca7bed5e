"""Instants and spans."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.time import FAR_FUTURE, LONGEST, SECOND, instant_of, length_of, moment_of, span_of


@given(moment=st.datetimes(timezones=st.timezones()))
def test_a_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    assert moment_of(instant_of(moment)) == moment.astimezone(UTC)


@given(instant=st.integers(0, FAR_FUTURE))
def test_an_instant_comes_back(instant: int) -> None:
    assert instant_of(moment_of(instant)) == instant


def test_known_moments() -> None:
    assert instant_of(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert instant_of(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
    assert instant_of(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert moment_of(FAR_FUTURE) == datetime(2255, 3, 14, 16, 0, tzinfo=UTC)
    assert FAR_FUTURE < 2**53


def test_the_hour_that_comes_twice_is_two_moments() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    assert instant_of(first.replace(fold=1)) - instant_of(first) == 3_600 * SECOND


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(BadInput, match="no time zone"):
        instant_of(datetime(2026, 1, 1))  # noqa: DTZ001


@given(span=st.integers(0, LONGEST))
def test_a_length_comes_back(span: int) -> None:
    assert span_of(length_of(span)) == span


@pytest.mark.parametrize(
    ("length", "span"),
    [(0, 0), (2, 2 * SECOND), (0.5, 500_000), (1e-6, 1), (4e-7, 0), (timedelta(milliseconds=3), 3_000)],
)
def test_a_length_is_seconds_or_a_timedelta(length: float | timedelta, span: int) -> None:
    assert span_of(length) == span


@pytest.mark.parametrize(
    "length",
    [
        -1,
        -1e-6,
        timedelta(seconds=-1),
        float("nan"),
        float("inf"),
        float("-inf"),
        1e30,
        FAR_FUTURE,
        True,
        "5",
        None,
    ],
)
def test_other_lengths_are_refused(length: Any) -> None:
    with pytest.raises(BadInput, match="a length of time"):
        span_of(length)
