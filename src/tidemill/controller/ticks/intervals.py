"""Sets the next time of intervals whose run ended without setting it.

While the run of an interval goes on, nothing is due, and the end of the run sets the next time. A job that
ended without setting it (cancelled, expired, dropped, its last crash) is found here, and the time is set.
"""

from collections.abc import Mapping, Sequence

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.schedules.firing import after_end
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import MILLISECOND, Instant, Span

SHORTEST_LOOK: Span = 50 * MILLISECOND
"""Between looks at an interval whose run is under way."""


class IntervalTurns:
    """Of more than can be looked at in one run, each gets its turn."""

    def __init__(self) -> None:
        self._last = ""

    def take(self, schedules: Sequence[Schedule], most: int) -> list[Schedule]:
        """The next ones by name, and after the last the first again."""
        ahead = [each for each in schedules if each.name > self._last]
        taken = [*ahead, *(each for each in schedules if each.name <= self._last)][:most]
        self._last = taken[-1].name if taken else ""
        return taken


def is_under_way(schedule: Schedule, now: Instant) -> bool:
    """An interval that waits for the end of a run."""
    timing = schedule.timing
    return (
        isinstance(timing, Every)
        and schedule.next_at is None
        and schedule.last_at is not None
        and (timing.end is None or now <= timing.end)
    )


def end_of_run(schedule: Schedule, now: Instant) -> Instant | None:
    """When to look for the time that the end of an interval's run sets: it lies a whole interval ahead."""
    timing = schedule.timing
    return now + max(timing.span // 2, SHORTEST_LOOK) if isinstance(timing, Every) else None


async def catch_up(
    seen: ScheduleSnapshot, schedule: Schedule, jobs: Mapping[JobId, JobRecord]
) -> Instant | None:
    """Set its next time, if its job has ended all the same; when to look at it next."""
    assert isinstance(schedule.timing, Every)
    next_at = after_end(schedule.timing, jobs.get(schedule.last_job or b""), seen.now)
    if next_at is None:
        return end_of_run(schedule, seen.now)
    await seen.engine.schedules.fire(
        schedule.name, tick=None, before=schedule.last_at, next_at=next_at, jobs=(), now=seen.at
    )
    return next_at
