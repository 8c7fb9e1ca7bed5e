"""Repairs `next_at` values that were computed from an older schedule.

When a run of an interval ends, it sets the next time by the interval that its job was fired with. A deploy
may have changed the schedule meanwhile (from a day to a minute, or to a cron). Then that time is wrong, and
nothing would be fired until it comes.

`model.schedules.firing.right_time` computes the right value. It is written as every firing is: only if the
schedule has not changed since it was read.

Computing the next tick of a cron takes up to a millisecond. So each value of a cron is checked once.
"""

import logging
from collections.abc import Mapping, Sequence

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.schedules.firing import right_time
from tidemill.model.schedules.schedule import Cron, Schedule
from tidemill.model.time import Instant

log = logging.getLogger("tidemill.controller")


class ScheduleRepairs:
    """Remembers which values of `next_at` are right."""

    def __init__(self) -> None:
        self._right: dict[str, tuple[int, Instant | None]] = {}

    def doubtful(self, schedules: Sequence[Schedule], now: Instant) -> list[Schedule]:
        """Schedules whose `next_at` lies in the future and is wrong, or has not been checked yet."""
        self._right = {each.name: self._right[each.name] for each in schedules if each.name in self._right}
        ahead = [each for each in schedules if each.next_at is not None and each.next_at > now]
        return [each for each in ahead if self._is_doubtful(each, now)]

    def _is_doubtful(self, schedule: Schedule, now: Instant) -> bool:
        if isinstance(schedule.timing, Cron):
            return self._right.get(schedule.name) != (schedule.version, schedule.next_at)
        return right_time(schedule, now) != schedule.next_at

    def know(self, schedule: Schedule, next_at: Instant | None) -> None:
        """This `next_at` was computed from the present version of the schedule."""
        self._right[schedule.name] = schedule.version, next_at

    async def repair(
        self, seen: ScheduleSnapshot, schedule: Schedule, _: Mapping[JobId, JobRecord]
    ) -> Instant | None:
        """Write the right `next_at` if another value is there. Returns the right value."""
        next_at = right_time(schedule, seen.now)
        if next_at != schedule.next_at:
            changed = await seen.engine.schedules.fire(
                schedule.name,
                tick=schedule.next_at,
                before=schedule.last_at,
                next_at=next_at,
                jobs=(),
                now=seen.at,
            )
            if changed is not None:
                log.info("repaired the next time of %s, which came from an older schedule", schedule.name)
        self.know(schedule, next_at)
        return next_at
