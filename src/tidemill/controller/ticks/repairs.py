"""Repairs `next_at` values that were computed from an older schedule.

The end of an interval's run sets the next time by the interval that its job was fired with. If a deploy has
changed the schedule meanwhile (from a day to a minute, or to a cron), that time is wrong, and nothing would
be fired until it comes. `model.firing.right_time` says which is right; it is set as everything is here, only
if nothing else has changed.

To look for a cron's tick takes up to a millisecond, so the same time is looked at once.
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
    """Remembers which times are right."""

    def __init__(self) -> None:
        self._right: dict[str, tuple[int, Instant | None]] = {}

    def doubtful(self, schedules: Sequence[Schedule], now: Instant) -> list[Schedule]:
        """Those whose time lies ahead and is wrong, or has not been looked at."""
        self._right = {each.name: self._right[each.name] for each in schedules if each.name in self._right}
        ahead = [each for each in schedules if each.next_at is not None and each.next_at > now]
        return [each for each in ahead if self._is_doubtful(each, now)]

    def _is_doubtful(self, schedule: Schedule, now: Instant) -> bool:
        if isinstance(schedule.timing, Cron):
            return self._right.get(schedule.name) != (schedule.version, schedule.next_at)
        return right_time(schedule, now) != schedule.next_at

    def know(self, schedule: Schedule, next_at: Instant | None) -> None:
        """This time was worked out for it as it is now."""
        self._right[schedule.name] = schedule.version, next_at

    async def put_right(
        self, seen: ScheduleSnapshot, schedule: Schedule, _: Mapping[JobId, JobRecord]
    ) -> Instant | None:
        """Set the right time, unless it is that; when it comes."""
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
                log.info("the next time of %s was set for an earlier timing: it is put right", schedule.name)
        self.know(schedule, next_at)
        return next_at
