"""Which jobs a due schedule makes: missed ticks, overlap, jitter, daylight saving, start and end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.errors import BadInput
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import Failure, JobRecord, JobState, NewJob
from tidemill.model.jobs.run import Completed, Crashed, Failed, Stopped, Then
from tidemill.model.schedules.firing import (
    MISSED_LIMIT,
    ON_TIME,
    after_end,
    firing_of,
    jitter_of,
    job_of,
    latest_ticks,
    then_of,
)
from tidemill.model.schedules.schedule import Cron, Every, Schedule, Startup, check_schedule, tick_id
from tidemill.model.time import DAY, HOUR, MINUTE, SECOND, Instant, instant_of, moment_of

NOON = instant_of(datetime(2026, 6, 1, 12, tzinfo=UTC))
JOB = NewJob(id=bytes(16), task="t", queue="q")
MINUTELY = Cron(fields="* * * * *")
FAILURE = Failure(message="no")


def a_schedule(timing: Any = MINUTELY, **options: Any) -> Schedule:
    return Schedule(**{"name": "s", "timing": timing, "job": JOB, "next_at": NOON, **options})


def ids_at(*ticks: Instant) -> list[bytes]:
    return [tick_id("s", tick) for tick in ticks]


def ids_of(jobs: tuple[NewJob, ...]) -> list[bytes]:
    return [job.id for job in jobs]


# Missed


@pytest.mark.row("D4")
@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_tick_on_time_makes_its_job(missed: Any) -> None:
    firing = firing_of(a_schedule(missed=missed, overlap="allow"), NOON + 3)
    assert ids_of(firing.jobs) == ids_at(NOON)
    assert firing.next_at == NOON + MINUTE


@pytest.mark.row("D4")
def test_missed_ticks_make_one_job_by_default() -> None:
    firing = firing_of(a_schedule(), NOON + 5 * MINUTE + 1)
    assert ids_of(firing.jobs) == ids_at(NOON + 5 * MINUTE)
    assert (firing.last_at, firing.next_at) == (NOON + 5 * MINUTE, NOON + 6 * MINUTE)


@pytest.mark.row("D4")
def test_missed_ticks_may_be_skipped() -> None:
    hourly = a_schedule(Cron(fields="0 * * * *"), missed="skip")
    assert ids_of(firing_of(hourly, NOON + ON_TIME).jobs) == ids_at(NOON)
    late = firing_of(hourly, NOON + ON_TIME + 1)
    assert (late.jobs, late.next_at, late.passed_over) == ((), NOON + HOUR, 1)
    # of many, only the last can still be on time
    assert ids_of(firing_of(hourly, NOON + 7 * HOUR + 2).jobs) == ids_at(NOON + 7 * HOUR)


@pytest.mark.row("D4")
def test_all_missed_ticks_are_bounded_to_the_latest() -> None:
    schedule = a_schedule(missed="all", overlap="allow")
    some = firing_of(schedule, NOON + 3 * MINUTE)
    assert ids_of(some.jobs) == ids_at(*(NOON + n * MINUTE for n in range(4)))
    many = firing_of(schedule, NOON + 400 * DAY)
    last = NOON + 400 * DAY
    assert ids_of(many.jobs) == ids_at(*(last - n * MINUTE for n in reversed(range(MISSED_LIMIT))))
    assert many.next_at == last + MINUTE


def test_a_year_of_missed_seconds_costs_nothing() -> None:
    secondly = Cron(fields="* * * * * *")
    assert latest_ticks(secondly, NOON, NOON + 365 * DAY, 2) == [NOON + 365 * DAY - SECOND, NOON + 365 * DAY]


def test_a_crowd_of_missed_ticks_is_not_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second of Sundays, on the Wednesday after: 86,400 of them in one window of the looks."""
    seconds_of_sunday = Cron(fields="* * * * * sun")
    sunday = NOON - 12 * HOUR - DAY
    taken, ticks_after = 0, Cron.ticks_after

    def counting(timing: Cron, moment: Instant) -> Iterator[Instant]:
        nonlocal taken
        for tick in ticks_after(timing, moment):
            taken += 1
            yield tick

    monkeypatch.setattr(Cron, "ticks_after", counting)
    last = sunday + DAY - SECOND
    found = latest_ticks(seconds_of_sunday, sunday, sunday + 4 * DAY, 3)
    assert found == [last - 2 * SECOND, last - SECOND, last]
    assert taken < 1_000


@given(
    start=st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    hours=st.integers(1, 72),
    fields=st.sampled_from(["*/20 * * * *", "30 2 * * *", "0 */6 * * *", "0 3 * * sun", "* 3 * * *"]),
    tz=st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_the_latest_ticks_are_those_found_one_by_one(
    start: datetime, hours: int, fields: str, tz: str
) -> None:
    timing = Cron(fields=fields, tz=tz)
    first = timing.next_after(instant_of(start))
    until, ticks = first + hours * HOUR, []
    tick = first
    while tick <= until:
        ticks.append(tick)
        tick = timing.next_after(tick)
    for most in (1, 3, 1_000):
        assert latest_ticks(timing, first, until, most) == ticks[-most:]


@pytest.mark.row("D4")
@pytest.mark.parametrize(
    ("day", "shown"),
    [
        (datetime(2026, 3, 28, 12, tzinfo=UTC), ["29 03:00 +0200", "30 02:30 +0200"]),
        (datetime(2026, 10, 24, 12, tzinfo=UTC), ["25 02:30 +0200", "26 02:30 +0100"]),
    ],
)
def test_a_nightly_job_is_fired_once_over_each_change_of_the_clock(day: datetime, shown: list[str]) -> None:
    timing = Cron(fields="30 2 * * *", tz="Europe/Berlin")
    start = instant_of(day)
    schedule, fired = a_schedule(timing, next_at=timing.first_from(start)), []
    for quarter in range(1, 45 * 4):  # a controller that looks every quarter of an hour
        now = start + quarter * HOUR // 4
        if schedule.next_at is not None and schedule.next_at <= now:
            firing = firing_of(schedule, now)
            fired += [firing.last_at] if firing.last_at is not None else []
            assert ids_of(firing.jobs) == ids_at(*fired[-len(firing.jobs) :])
            schedule = msgspec.structs.replace(schedule, next_at=firing.next_at, last_at=firing.last_at)
    zone = ZoneInfo("Europe/Berlin")
    assert [moment_of(tick).astimezone(zone).strftime("%d %H:%M %z") for tick in fired] == shown


# Overlap


@pytest.mark.row("D4")
def test_a_tick_is_passed_over_while_the_last_job_has_not_ended() -> None:
    firing = firing_of(a_schedule(), NOON, unfinished=[NOON - MINUTE])
    assert (firing.jobs, firing.next_at, firing.passed_over) == ((), NOON + MINUTE, 1)


@pytest.mark.row("D4")
def test_overlapping_jobs_may_queue() -> None:
    """Each behind all that have not ended: one between them may end before its time."""
    before = [NOON - 7 * MINUTE, NOON - MINUTE]
    schedule = a_schedule(overlap="queue", missed="all")
    firing = firing_of(schedule, NOON + MINUTE, unfinished=before)
    one, two = firing.jobs
    assert one.after == tuple(ids_at(*before))
    assert two.after == (*ids_at(*before), one.id)
    assert {one.parent_died, two.parent_died} == {"run"}
    assert (firing.last_at, firing.line) == (NOON + MINUTE, (*before, NOON))
    alone, _ = firing_of(schedule, NOON + MINUTE).jobs
    assert alone.after == ()


@pytest.mark.row("D4")
@pytest.mark.parametrize(("standing", "made"), [(0, 3), (1, 2), (2, 1), (3, 0), (9, 0)])
def test_a_line_has_a_bound(standing: int, made: int) -> None:
    """One runs and `waiting` wait. Of several ticks the latest get the room."""
    schedule = a_schedule(overlap="queue", missed="all", waiting=2)
    before = [NOON - number * MINUTE for number in range(standing, 0, -1)]
    firing = firing_of(schedule, NOON + 4 * MINUTE, unfinished=before)
    ticks = [NOON + number * MINUTE for number in range(5)]
    assert ids_of(firing.jobs) == ids_at(*ticks[5 - made :])
    assert (firing.full, firing.passed_over) == (5 - made, 5 - made)
    assert firing.next_at == NOON + 5 * MINUTE
    assert firing.last_at == (ticks[-1] if made else None)
    if made:
        assert firing.line == tuple([*before, *ticks[5 - made :]][:-1])


@pytest.mark.row("D4")
def test_overlapping_jobs_may_be_allowed() -> None:
    (job,) = firing_of(a_schedule(overlap="allow"), NOON, unfinished=[NOON - MINUTE]).jobs
    assert job.after == ()


# Jitter


@pytest.mark.row("D4")
def test_jitter_is_the_same_for_everybody_who_fires_the_tick() -> None:
    schedule = a_schedule(Cron(fields="* * * * *", jitter=30))
    (job,) = firing_of(schedule, NOON).jobs
    assert firing_of(schedule, NOON + 9).jobs == (job,)
    assert job.at is not None
    assert NOON <= job.at < NOON + 30 * SECOND
    later = msgspec.structs.replace(schedule, job=msgspec.structs.replace(JOB, delay=5 * SECOND))
    assert firing_of(later, NOON).jobs[0].at == job.at + 5 * SECOND


def test_jitter_spreads_evenly() -> None:
    drawn = [jitter_of(f"s{n}", NOON, 10 * SECOND) for n in range(1_000)]
    assert 0 <= min(drawn) <= max(drawn) < 10 * SECOND
    tenths = [sum(1 for each in drawn if each // SECOND == tenth) for tenth in range(10)]
    assert all(60 < count < 150 for count in tenths)


# Start and end


@pytest.mark.row("D4")
def test_no_tick_before_the_start_nor_after_the_end() -> None:
    timing = Cron(fields="* * * * *", start=NOON + 5 * MINUTE, end=NOON + 6 * MINUTE + 1)
    assert timing.first_from(NOON) == NOON + 5 * MINUTE
    assert timing.first_from(NOON + 9 * MINUTE) is None
    schedule = a_schedule(timing, next_at=NOON + 5 * MINUTE)
    assert firing_of(schedule, NOON + 5 * MINUTE).next_at == NOON + 6 * MINUTE
    last = firing_of(schedule, NOON + 30 * MINUTE)
    assert ids_of(last.jobs) == ids_at(NOON + 6 * MINUTE)
    assert last.next_at is None


def test_an_interval_has_a_start_and_an_end() -> None:
    timing = Every(seconds=60, start=NOON, end=NOON + MINUTE)
    assert [timing.first_from(NOON + at) for at in (-5, 3, MINUTE + 1)] == [NOON, NOON + 3, None]
    over = firing_of(a_schedule(timing, next_at=NOON + 2 * MINUTE), NOON + 2 * MINUTE)
    assert (over.jobs, over.next_at) == ((), None)


# Intervals


@pytest.mark.row("D4")
def test_an_interval_waits_for_the_end_of_its_run() -> None:
    schedule = a_schedule(Every(seconds=3), job=msgspec.structs.replace(JOB, headers=b'{"tags":["x"]}'))
    firing = firing_of(schedule, NOON + 2)
    (job,) = firing.jobs
    assert (job.id, firing.next_at) == (tick_id("s", NOON), None)
    assert msgspec.json.decode(job.headers or b"") == {"tags": ["x"], "every_s": 3, "every_version": 0}
    assert firing_of(schedule, NOON, unfinished=[NOON - MINUTE]).jobs == ()


@pytest.mark.row("D4")
@pytest.mark.parametrize(
    ("outcome", "sets"),
    [
        (Completed(), True),
        (Stopped(), True),
        (Failed(failure=FAILURE), True),
        (Failed(failure=FAILURE, retry_in=5), False),
        (Failed(failure=FAILURE, retry_in=0), False),
        (Crashed(), False),
    ],
)
def test_the_end_of_a_run_sets_the_next_time(outcome: Any, sets: bool) -> None:
    job = job_of(a_schedule(Every(seconds=3), version=7), NOON)
    then = then_of("s", job.headers, outcome)
    assert then == (Then(schedule="s", schedule_in=3 * SECOND, schedule_version=7) if sets else None)


@pytest.mark.parametrize(
    "headers",
    [None, b"{}", b"nonsense", b"[1]", b'{"every_s":"x","every_version":1}', b'{"every_s":1}'],
)
def test_other_jobs_set_nothing(headers: bytes | None) -> None:
    assert then_of("s", headers, Completed()) is None


@pytest.mark.row("D4")
def test_a_job_that_ended_without_setting_the_next_time() -> None:
    every = Every(seconds=60)
    job = JobRecord(id=new_id(), task="t", queue="q", priority=5, state=JobState.CANCELLED, ended_at=NOON)
    assert after_end(every, job, NOON + SECOND) == NOON + MINUTE
    assert after_end(every, job, NOON + HOUR) == NOON + HOUR
    assert after_end(every, None, NOON) == NOON + MINUTE
    for state in (JobState.RUNNING, JobState.READY, JobState.SCHEDULED, JobState.BLOCKED):
        assert after_end(every, msgspec.structs.replace(job, state=state), NOON + HOUR) is None


def test_a_time_that_is_no_tick_any_more_is_passed_over() -> None:
    """The rules of a time zone change, and with them the ticks."""
    firing = firing_of(a_schedule(next_at=NOON + 7), NOON + 8)
    assert (firing.jobs, firing.next_at) == ((), NOON + MINUTE)
    assert firing_of(a_schedule(Startup()), NOON).jobs == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cron(fields="* * * * *", jitter=-1), "length of time"),
        (lambda: Every(seconds=3, start=5, end=4), "after its end"),
        (lambda: check_schedule(a_schedule(missed="all")), "queue"),
    ],
)
def test_nonsense_is_refused(make: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()
