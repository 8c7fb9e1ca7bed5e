"""Cron in time zones, intervals, and the id of a tick."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Cron, Every, Schedule, check_schedule, tick_id
from tidemill.model.time import SECOND, Instant, instant_of, moment_of

BERLIN = "Europe/Berlin"


def ticks(cron: Cron, start: datetime, count: int) -> list[str]:
    """The next ticks in the cron's own zone, with their offset from UTC."""
    moment, shown = instant_of(start), []
    for _ in range(count):
        moment = cron.next_after(moment)
        shown.append(moment_of(moment).astimezone(ZoneInfo(cron.tz)).strftime("%d %H:%M %z"))
    return shown


def test_a_nightly_run_in_the_skipped_hour_happens_once_right_after_it() -> None:
    cron = Cron(fields="30 2 * * *", tz=BERLIN)
    start = datetime(2026, 3, 27, 12, tzinfo=UTC)
    assert ticks(cron, start, 3) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]


def test_a_nightly_run_in_the_doubled_hour_happens_once() -> None:
    cron = Cron(fields="30 2 * * *", tz=BERLIN)
    start = datetime(2026, 10, 23, 12, tzinfo=UTC)
    assert ticks(cron, start, 3) == ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]


@pytest.mark.row("D4")
@pytest.mark.parametrize(
    ("tz", "doubled"),
    [
        (BERLIN, datetime(2026, 10, 25, 0, tzinfo=UTC)),
        ("America/New_York", datetime(2026, 11, 1, 5, tzinfo=UTC)),
        ("Australia/Lord_Howe", datetime(2026, 4, 4, 14, 30, tzinfo=UTC)),
    ],
)
@given(minute=st.integers(0, 180), seconds=st.integers(0, 59), at=st.integers(0, 59), hour=st.integers(0, 4))
def test_in_the_doubled_hour_the_next_tick_lies_ahead(
    tz: str, doubled: datetime, minute: int, seconds: int, at: int, hour: int
) -> None:
    """In both passes; and a fixed time comes once in them, whenever one asks."""
    moment = instant_of(doubled + timedelta(minutes=minute, seconds=seconds))
    for fields in (f"{at} {hour} * * *", f"{at} * * * *", f"*/7 {hour} * * *", f"{at} {hour},5 * * * *"):
        assert Cron(fields=fields, tz=tz).next_after(moment) > moment
    fixed = Cron(fields=f"{at} {hour} * * *", tz=tz)
    morning = instant_of(doubled - timedelta(hours=6))
    first = [tick for tick, _ in zip(fixed.ticks_after(morning), range(2), strict=False)]
    assert first[1] - first[0] > 12 * 3_600 * SECOND
    assert fixed.next_after(moment) == next(tick for tick in fixed.ticks_after(morning) if tick > moment)


def test_an_hourly_run_follows_real_hours_over_the_spring_change() -> None:
    cron = Cron(fields="0 * * * *", tz=BERLIN)
    start = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    assert ticks(cron, start, 3) == ["29 01:00 +0100", "29 03:00 +0200", "29 04:00 +0200"]


def test_an_hourly_run_follows_real_hours_over_the_autumn_change() -> None:
    cron = Cron(fields="0 * * * *", tz=BERLIN)
    start = datetime(2026, 10, 24, 23, 30, tzinfo=UTC)
    assert ticks(cron, start, 4) == ["25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100", "25 04:00 +0100"]


@given(
    moment=st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    fields=st.sampled_from(["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15 10 * * mon-fri"]),
    tz=st.sampled_from(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_the_next_tick_lies_ahead_and_nothing_lies_between(moment: datetime, fields: str, tz: str) -> None:
    cron, start = Cron(fields=fields, tz=tz), instant_of(moment)
    tick = cron.next_after(start)
    assert tick > start
    assert cron.next_after(tick - 1) == tick
    assert cron.next_after((start + tick) // 2) in (tick, cron.next_after(tick))


def test_a_sixth_field_gives_seconds() -> None:
    cron = Cron(fields="*/20 * * * * *")
    assert cron.next_after(0) == 20 * SECOND
    assert cron.next_after(40 * SECOND) == 60 * SECOND


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * * * noday",
        "*/0 * * * *",
        "0 0 31 2 *",
    ],
)
def test_a_bad_expression_is_refused_by_name(fields: str) -> None:
    with pytest.raises(BadInput) as refused:
        Cron(fields=fields).check()
    assert repr(fields) in str(refused.value)
    assert "time zone" not in str(refused.value)


@pytest.mark.parametrize("tz", ["", "Berlin", "Europe/Atlantis", "../../etc/passwd", "/etc/localtime"])
def test_a_bad_time_zone_is_refused_by_name(tz: str) -> None:
    with pytest.raises(BadInput, match="is not a time zone"):
        Cron(fields="0 3 * * *", tz=tz).check()


def test_a_time_zone_that_this_host_does_not_know_is_read_all_the_same() -> None:
    """It was declared on another host: here it is trouble of this one schedule, when it is to be fired."""
    strange = Schedule(
        name="s",
        timing=Cron(fields="0 3 * * *", tz="Mars/Olympus"),
        job=NewJob(id=bytes(16), task="t", queue="q"),
    )
    assert msgspec.json.decode(msgspec.json.encode(strange), type=Schedule) == strange
    with pytest.raises(BadInput, match="is not a time zone"):
        check_schedule(strange)


@pytest.mark.parametrize("seconds", [0, 1e-7, -1, float("nan"), float("inf"), "5"])
def test_a_bad_interval_is_refused(seconds: Any) -> None:
    with pytest.raises(BadInput):
        Every(seconds=seconds)


@given(seconds=st.integers(1, 10**9), moment=st.integers(0, 10**16))
def test_an_interval_is_added(seconds: int, moment: Instant) -> None:
    assert Every(seconds=seconds).next_after(moment) == moment + seconds * SECOND
    assert Every(seconds=0.25).next_after(moment) == moment + 250_000


names = st.text(min_size=1, max_size=10)
instants = st.integers(0, 10**16)


@given(names, instants, names, instants)
def test_a_tick_has_one_id_and_no_other_tick_has_it(
    name: str, tick: Instant, other: str, later: Instant
) -> None:
    assert (tick_id(name, tick) == tick_id(other, later)) is ((name, tick) == (other, later))


@given(names, instants)
def test_a_tick_stands_in_the_time_bits_of_its_id(name: str, tick: Instant) -> None:
    job_id = tick_id(name, tick)
    assert int.from_bytes(job_id[:6], "big") == tick // 1_000
    assert job_id[6] >> 4 == 7


def test_a_month_of_nightly_runs_has_as_many_ticks_as_nights() -> None:
    cron, moment = Cron(fields="30 2 * * *", tz=BERLIN), instant_of(datetime(2026, 3, 1, tzinfo=UTC))
    end = instant_of(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=31))
    nights = 0
    while (moment := cron.next_after(moment)) < end:
        nights += 1
    assert nights == 31
