"""Schedules in words."""

from datetime import UTC, datetime

import pytest

from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Cron, Every, Schedule, Startup, Timing
from tidemill.model.schedules.spoken import length_of, state_of, words_of
from tidemill.model.time import instant_of

NEW_YEAR = instant_of(datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("0 * * * *", "every hour UTC"),
        ("0 */6 * * *", "every 6 hours from 00:00 UTC"),
        ("30 2 * * *", "every day at 02:30 UTC"),
        ("0 30 2 * * *", "every day at 02:30 UTC"),
        ("0 9,17 * * *", "every day at 09:00 and 17:00 UTC"),
        ("0 3 * * sun", "every Sunday at 03:00 UTC"),
        ("0 3 * * 7", "every Sunday at 03:00 UTC"),
        ("0 9 * * mon-fri", "every Monday to Friday at 09:00 UTC"),
        ("0 9 * * 1,3,5", "every Monday, Wednesday and Friday at 09:00 UTC"),
        ("0 4 1 * *", "on day 1 of every month at 04:00 UTC"),
        ("0 4 24 dec *", "every year on 24 December at 04:00 UTC"),
        # others as cronsim explains them
        ("*/7 * * * *", "every seventh minute of every hour UTC"),
        ("5 * * * * *", "at second 5 of every minute UTC"),
    ],
)
def test_cron_in_words(fields: str, words: str) -> None:
    assert words_of(Cron(fields=fields)) == words


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Cron(fields="0 3 * * sun", tz="Europe/Berlin"), "every Sunday at 03:00 Europe/Berlin"),
        (Every(seconds=3), "3 s after each run"),
        (Every(seconds=0.25, jitter=90), "0.25 s after each run, up to 90 s later"),
        (
            Every(seconds=7_200, start=NEW_YEAR, end=NEW_YEAR),
            "2 h after each run, from 2027-01-01 00:00 UTC, until 2027-01-01 00:00 UTC",
        ),
        (Startup(), "when the cluster starts"),
    ],
)
def test_other_timings_in_words(timing: Timing, words: str) -> None:
    assert words_of(timing) == words


def test_lengths() -> None:
    assert [length_of(seconds) for seconds in (0.5, 59, 60, 90, 3_600, 86_400)] == [
        "0.5 s", "59 s", "1 min", "90 s", "1 h", "1 d",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("timing", "options", "state"),
    [
        (Every(seconds=3), {"next_at": 5}, "active"),
        (Every(seconds=3), {}, "running"),
        (Every(seconds=3, end=9), {}, "ended"),
        (Cron(fields="* * * * *"), {}, "ended"),
        (Cron(fields="* * * * *"), {"next_at": 5, "paused": True}, "paused"),
        (Startup(), {}, "active"),
        (Startup(), {"retired_at": 7, "paused": True}, "retired"),
    ],
)
def test_states(timing: Timing, options: dict[str, int], state: str) -> None:
    job = NewJob(id=bytes(16), task="t", queue="q")
    schedule = Schedule(name="s", timing=timing, job=job, **options)  # type: ignore[arg-type]
    assert state_of(schedule, 10) == state
