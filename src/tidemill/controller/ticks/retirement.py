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
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.errors import BadInput
from tidemill.model.member import MemberInfo, MemberRecord
from tidemill.model.schedules.generation import live_workers
from tidemill.model.schedules.schedule import PROGRAM, Schedule
from tidemill.model.time import SECOND, Instant, Span

GRACE: Span = 15 * SECOND
BY = "controller"
"""The author of a retirement in the audit."""

K = TypeVar("K", bound=Hashable)

log = logging.getLogger("tidemill.controller")


class MissingSince(Generic[K]):
    """Remembers since when each has been missing. The next controller begins to count anew."""

    def __init__(self, grace: Span) -> None:
        self._grace = grace
        self._since: dict[K, Instant] = {}

    def overdue(self, missing: Iterable[K], now: Instant) -> list[K]:
        """Those that have been missing, in every call, for long enough."""
        self._since = {key: self._since.get(key, now) for key in missing}
        return [key for key, since in self._since.items() if now - since >= self._grace]


def judged_apps(
    workers: Sequence[MemberRecord], said: Callable[[MemberInfo], Sequence[str] | None]
) -> set[str]:
    """The apps whose workers have all said what their code declares."""
    silent = {worker.info.app for worker in workers if said(worker.info) is None}
    return {worker.info.app for worker in workers} - silent - {PROGRAM}


class Retirement:
    """Schedules that no code declares any more."""

    def __init__(self, grace: Span = GRACE) -> None:
        self._missing = MissingSince[str](grace)

    async def run(self, seen: ScheduleSnapshot, members: Sequence[MemberRecord]) -> None:
        """Retire what has been missing for long enough; bring back what is declared."""
        workers = live_workers(members)
        declared = {name for worker in workers for name in worker.info.schedules or ()}
        judged = judged_apps(workers, lambda info: info.schedules)
        by_name = {schedule.name: schedule for schedule in seen.schedules if schedule.source}
        retire = seen.engine.schedules.retire
        missing = [
            schedule.name
            for schedule in by_name.values()
            if schedule.name not in declared and schedule.retired_at is None and schedule.source in judged
        ]
        for name in self._missing.overdue(missing, seen.now):
            if seen.term.trusted():
                await retire(name, retired=True, by=BY, now=seen.at)
                source = by_name[name].source
                log.warning("the schedule %s is retired: no worker of %s declares it any more", name, source)
        for schedule in by_name.values():
            if schedule.name in declared and schedule.retired_at is not None and seen.term.trusted():
                next_at = _from_now_on(schedule, seen.now)
                await retire(
                    schedule.name,
                    retired=False,
                    next_at=next_at,
                    version=schedule.version,
                    by=BY,
                    now=seen.at,
                )


def _from_now_on(schedule: Schedule, now: Instant) -> Instant | None:
    try:
        return schedule.timing.first_from(now)
    except BadInput:  # a time zone that this host does not know: the firing reports it
        return now
