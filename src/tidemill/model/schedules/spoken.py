"""Schedules in words that a person reads."""

from typing import Literal

from cronsim import CronSim

from tidemill.model.schedules.schedule import Cron, Schedule, Startup, Timing
from tidemill.model.time import Instant, moment_of

State = Literal["active", "running", "paused", "retired", "ended"]

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAY_NAMES = {day[:3].lower(): number for number, day in enumerate(DAYS)}
_MONTH_NAMES = {month[:3].lower(): number for number, month in enumerate(MONTHS, 1)}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def state_of(schedule: Schedule, now: Instant) -> State:
    """What a schedule is doing, in one word."""
    timing = schedule.timing
    if schedule.retired_at is not None:
        return "retired"
    if schedule.paused:
        return "paused"
    if schedule.next_at is not None or isinstance(timing, Startup):
        return "active"
    over = isinstance(timing, Cron) or (timing.end is not None and now > timing.end)
    return "ended" if over else "running"


def words_of(timing: Timing) -> str:
    """`every Sunday at 03:00 Europe/Berlin`, `3 s after each run`, `when the cluster starts`."""
    if isinstance(timing, Startup):
        return "when the cluster starts"
    words = _of_cron(timing) if isinstance(timing, Cron) else f"{length_of(timing.seconds)} after each run"
    if timing.jitter:
        words += f", up to {length_of(timing.jitter)} later"
    if timing.start is not None:
        words += f", from {_moment(timing.start)}"
    if timing.end is not None:
        words += f", until {_moment(timing.end)}"
    return words


def length_of(seconds: float) -> str:
    """`3 s`, `5 min`, `2 h`."""
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:g} {unit}"
    return f"{seconds:g} s"


def _of_cron(cron: Cron) -> str:
    words = _regular(cron.fields.lower().split())
    if words is None:
        explained: str = CronSim(cron.fields, moment_of(0)).explain()
        words = explained[0].lower() + explained[1:]
    steady = words.startswith("every ") and words.endswith(("second", "seconds", "minute", "minutes"))
    return words if steady else f"{words} {cron.tz}"  # steady: in every time zone the same


def _regular(fields: list[str]) -> str | None:
    """Of the patterns that most schedules have; None: another one."""
    if len(fields) == 6:
        seconds, *fields = fields
        if seconds != "0":
            step = _step(seconds, 60)
            every_minute = fields == ["*"] * 5
            return _times(step, "second") if step and every_minute else None
    minute, hour, *date = fields
    if date == ["*", "*", "*"]:
        if hour == "*" and (step := _step(minute, 60)):
            return _times(step, "minute")
        if minute == "0" and (step := _step(hour, 24)):
            return "every hour" if step == 1 else f"every {step} hours from 00:00"
    day = _day(*date)
    time = _time(minute, hour)
    return None if day is None or time is None else f"{day} {time}"


def _step(field: str, of: int) -> int | None:
    """`*/5` where it is the same throughout."""
    if field == "*":
        return 1
    number = field.removeprefix("*/")
    if number != field and number.isdigit() and 0 < int(number) < of and of % int(number) == 0:
        return int(number)
    return None


def _times(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _time(minute: str, hour: str) -> str | None:
    if not minute.isdigit():
        return None
    hours = hour.split(",")
    if not all(each.isdigit() for each in hours):
        return None
    return "at " + _listed([f"{int(each):02}:{int(minute):02}" for each in hours])


def _day(day: str, month: str, weekday: str) -> str | None:
    if (day, month) == ("*", "*"):
        return "every day" if weekday == "*" else _weekdays(weekday)
    if weekday != "*" or not day.isdigit():
        return None
    if month == "*":
        return f"on day {day} of every month"
    number = _MONTH_NAMES.get(month) or (int(month) if month.isdigit() else 0)
    return f"every year on {day} {MONTHS[number - 1]}" if 1 <= number <= 12 else None


def _weekdays(field: str) -> str | None:
    """`sun`, `mon-fri`, `1,3`."""
    first, dash, last = field.partition("-")
    if dash:
        ends = [_weekday(first), _weekday(last)]
        return None if None in ends else f"every {ends[0]} to {ends[1]}"
    days = [day for each in field.split(",") if (day := _weekday(each)) is not None]
    return f"every {_listed(days)}" if len(days) == field.count(",") + 1 else None


def _weekday(name: str) -> str | None:
    if name.isdigit():
        return DAYS[int(name) % 7] if int(name) <= 7 else None
    number = _DAY_NAMES.get(name)
    return None if number is None else DAYS[number]


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _moment(at: Instant) -> str:
    return moment_of(at).strftime("%Y-%m-%d %H:%M UTC")
