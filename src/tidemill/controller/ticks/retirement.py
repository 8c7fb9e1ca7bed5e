"""Retirement: schedules that no code declares any more.

Every worker says with its heartbeats which schedules the code that it has loaded declares. A declared
schedule is retired when workers of its app live, all of those have said what they declare, and none names it:
not at once, but when that has been so for `GRACE`. While one old worker is left, it fires on, and that worker
can run it; so a rolling deploy ends it once, when the last old worker goes. While no worker of its app is
there at all, nothing can be said of it, and nothing changes. Nor for an app without a name (`PROGRAM`):
another program that has none either is no later version of it.

A retired schedule stays, is shown as retired, and comes back when a worker declares it again, with its next
tick from then on: what was due meanwhile was not missed.
"""

import logging
from collections.abc import Sequence

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.errors import BadInput
from tidemill.model.member import MemberRecord
from tidemill.model.schedules.generation import live_workers
from tidemill.model.schedules.schedule import PROGRAM, Schedule
from tidemill.model.time import SECOND, Instant, Span

GRACE: Span = 15 * SECOND
BY = "controller"
"""Who does it, in the audit."""

log = logging.getLogger("tidemill.controller")


class Retirement:
    """Remembers since when schedules have been missing; the next controller begins to count anew."""

    def __init__(self, grace: Span = GRACE) -> None:
        self._grace = grace
        self._missing: dict[str, Instant] = {}

    async def run(self, seen: ScheduleSnapshot, members: Sequence[MemberRecord]) -> None:
        """Retire what has been missing for long enough; bring back what is declared."""
        workers = live_workers(members)
        declared = {name for worker in workers for name in worker.info.schedules or ()}
        silent = {worker.info.app for worker in workers if worker.info.schedules is None}
        judged = {worker.info.app for worker in workers} - silent - {PROGRAM}
        missing: dict[str, Instant] = {}
        retire = seen.engine.schedules.retire
        for schedule in seen.schedules:
            if not schedule.source or not seen.term.trusted():
                continue
            if schedule.name in declared:
                if schedule.retired_at is not None:
                    next_at = _from_now_on(schedule, seen.now)
                    await retire(schedule.name, retired=False, next_at=next_at, by=BY, now=seen.at)
            elif schedule.retired_at is None and schedule.source in judged:
                since = missing[schedule.name] = self._missing.get(schedule.name, seen.now)
                if seen.now - since >= self._grace:
                    await retire(schedule.name, retired=True, by=BY, now=seen.at)
                    log.warning(
                        "the schedule %s is retired: no worker of %s declares it any more",
                        schedule.name,
                        schedule.source,
                    )
        self._missing = missing


def _from_now_on(schedule: Schedule, now: Instant) -> Instant | None:
    try:
        return schedule.timing.first_from(now)
    except BadInput:  # a time zone that this host does not know: whoever fires it says so
        return now
