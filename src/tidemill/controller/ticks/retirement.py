"""Retirement: schedules that no code declares any more.

With its heartbeats every worker says which schedules its code declares. A declared schedule is retired when
all of this has been so for `GRACE`:

- workers of its app are alive;
- each of them has said what it declares;
- none of them names the schedule.

While one old worker is left, the schedule fires on, and that worker can run its jobs. So a rolling deploy
retires it once, when the last old worker goes. While no worker of its app is alive, nothing is known and
nothing changes. An app without a name (`PROGRAM`) never retires anything: another program without a name is
no later version of it.

A retired schedule stays and is shown as retired. It comes back when a worker declares it again, with its next
tick from then on: ticks in between were not missed.
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
"""The author of a retirement in the audit."""

log = logging.getLogger("tidemill.controller")


class Retirement:
    """Remembers since when each schedule has been missing. The next controller begins to count anew."""

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
    except BadInput:  # a time zone that this host does not know: the firing reports it
        return now
