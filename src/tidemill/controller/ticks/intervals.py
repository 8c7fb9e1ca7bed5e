"""Sets the next time of intervals whose run ended without setting it.

While a run of an interval is under way, the schedule has no next time. The end of the run sets it. Some jobs
end without that: cancelled, expired, dropped, after their last crash, or fired by a schedule that was changed
meanwhile. This module finds such a job and sets the next time of its schedule.
"""

from collections.abc import Mapping, Sequence

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.schedules.firing import after_end
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import MILLISECOND, Instant, Span

SHORTEST_CHECK: Span = 50 * MILLISECOND
"""The shortest pause between two checks of an interval whose run is under way."""


class IntervalTurns:
    """If there are more intervals than one run can check, each gets its turn."""

    def __init__(self) -> None:
        self._last = ""

    def take(self, schedules: Sequence[Schedule], most: int) -> list[Schedule]:
        """The next ones by name. After the last name it begins again with the first."""
        ahead = [each for each in schedules if each.name > self._last]
        taken = [*ahead, *(each for each in schedules if each.name <= self._last)][:most]
        self._last = taken[-1].name if taken else ""
        return taken


def is_under_way(schedule: Schedule, now: Instant) -> bool:
    """Whether it is an interval that waits for the end of a run."""
    timing = schedule.timing
    return (
        isinstance(timing, Every)
        and schedule.next_at is None
        and schedule.last_at is not None
        and (timing.end is None or now <= timing.end)
    )


def end_of_run(schedule: Schedule, now: Instant) -> Instant | None:
    """When to check again for the time that the end of the run sets. That time lies a whole interval
    ahead."""
    timing = schedule.timing
    return now + max(timing.span // 2, SHORTEST_CHECK) if isinstance(timing, Every) else None


async def catch_up(
    seen: ScheduleSnapshot, schedule: Schedule, jobs: Mapping[JobId, JobRecord]
) -> Instant | None:
    """Set the next time if the job has ended without setting it. Returns when to check this schedule
    again."""
    assert isinstance(schedule.timing, Every)
    next_at = after_end(schedule.timing, jobs.get(schedule.last_job or b""), seen.now)
    if next_at is None:
        return end_of_run(schedule, seen.now)
    await seen.engine.schedules.fire(
        schedule.name,
        tick=None,
        before=schedule.last_at,
        next_at=next_at,
        jobs=(),
        version=schedule.version,
        now=seen.at,
    )
    return next_at
