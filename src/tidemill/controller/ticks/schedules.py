"""Schedules fire here: due ticks become jobs, exactly once each, at their time.

One run reads all schedules and fires those that are due. `model.schedules.firing` says with which jobs. The
run returns when the next schedule is due.

**One job per tick**, even if a controller dies before, in or after a firing, and even if two
controllers run at once. A firing is applied only if `next_at` is still what the controller read; the second
one finds another value and changes nothing.

**No time comes from an older schedule.** A deploy may change a schedule between our read and our firing, or
while a run of it is under way. So firings, and the ends of runs, name the version of the schedule that they
go by. If it has another one by now, they set nothing: that change has set its next time.

**A run is bounded.** It fires at most so many schedules, and checks at most so many intervals under way
(`intervals`). A schedule that cannot be fired is left out for a while.

**What a schedule no longer keeps** (`model.schedules.keeping`) is dropped at the end of the run: firing comes
first. The next firing finds what was not dropped. No operator did it, so the audit has no entry of it.

**Nothing wakes a controller** when a schedule is put, resumed or triggered: the next run comes within a
second.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from tidemill.controller.ticks.intervals import IntervalTurns, catch_up, end_of_run, is_under_way
from tidemill.controller.ticks.retirement import GRACE, Retirement
from tidemill.controller.ticks.snapshot import HandClock, ScheduleSnapshot, take_snapshot
from tidemill.controller.ticks.startups import Startups
from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import BadInput, UnknownParent
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.schedules.firing import Firing, firing_of, unfinished_of
from tidemill.model.schedules.keeping import droppable, excess_of, kept_after
from tidemill.model.schedules.schedule import Schedule, Startup
from tidemill.model.time import MINUTE, SECOND, Instant, Span

EVERY_S = 1.0
FIRE_LIMIT = 100
"""The most schedules that one run fires, and the most intervals under way that it checks."""
AGAIN: Span = MINUTE
"""How long a schedule that could not be fired is left out, unless it is changed."""
CENSUS: Span = 2 * SECOND
"""How often the members are listed, for start-ups and for retired schedules."""

Step: TypeAlias = Callable[[ScheduleSnapshot, Schedule, Mapping[JobId, JobRecord]], Awaitable[Instant | None]]
"""What is done with one schedule and its last jobs. Returns when to check that schedule again."""

log = logging.getLogger("tidemill.controller")


class ScheduleTick:
    """See `tidemill.controller.ticks.tick.Tick`. `clock`: for tests that move the time by hand."""

    name = "schedules"
    every = EVERY_S

    def __init__(self, *, grace: Span = GRACE, census: Span = CENSUS, clock: HandClock | None = None) -> None:
        self._startups = Startups()
        self._retirement = Retirement(grace)
        self._turns = IntervalTurns()
        self._census = census
        self._counted_at: Instant | None = None
        self._clock = clock
        self._failed: dict[str, tuple[int, Instant | None, Instant]] = {}
        """Those that could not be fired: version, tick, and when that was."""
        self._spent: list[JobId] = []
        """The jobs that the schedules fired in this run no longer keep."""

    async def run(self, engine: Engine, term: Term) -> float | None:
        began = time.monotonic()
        self._spent = []
        seen = await take_snapshot(engine, term, self._clock)
        open_ones = [each for each in seen.schedules if each.fires and not self._is_left_out(each, seen.now)]
        due = sorted(
            (each for each in open_ones if each.next_at is not None and each.next_at <= seen.now),
            key=lambda each: each.next_at or 0,
        )
        under_way = [each for each in open_ones if is_under_way(each, seen.now)]
        steps: list[tuple[Step, Schedule]] = [
            *((self._fire, each) for each in due[:FIRE_LIMIT]),
            *((catch_up, each) for each in self._turns.take(under_way, FIRE_LIMIT)),
        ]
        jobs = await _last_jobs(engine, [each for _, each in steps])
        nexts = [each.next_at for each in open_ones if each.next_at is None or each.next_at > seen.now]
        nexts += [end_of_run(each, seen.now) for each in under_way]
        for step, schedule in steps:
            if not term.trusted():
                return None
            try:
                nexts.append(await step(seen, schedule, jobs))
            except BadInput as error:  # one that cannot be fired must not keep the others from it
                self._leave_out(schedule, error, seen.now)
        await self._count(seen)
        await self._drop_spent(seen)
        if len(due) > FIRE_LIMIT:
            return 0
        took = round((time.monotonic() - began) * SECOND)
        return _wait_s(nexts, seen.now + took)

    def _is_left_out(self, schedule: Schedule, now: Instant) -> bool:
        *what, at = self._failed.get(schedule.name, (None, None, now - AGAIN))
        return what == [schedule.version, schedule.next_at] and 0 <= now - at < AGAIN

    def _leave_out(self, schedule: Schedule, error: BadInput, now: Instant) -> None:
        """Leave it out for a while. Logged once for each of its ticks."""
        version, tick, _ = self._failed.get(schedule.name, (None, None, None))
        if (version, tick) != (schedule.version, schedule.next_at):
            log.error("the schedule %s cannot be fired: %s", schedule.name, error)
        self._failed[schedule.name] = schedule.version, schedule.next_at, now

    async def _fire(
        self, seen: ScheduleSnapshot, schedule: Schedule, jobs: Mapping[JobId, JobRecord]
    ) -> Instant | None:
        """Fire one schedule. Returns when to check it again."""
        firing = firing_of(schedule, seen.now, unfinished=unfinished_of(schedule, jobs))
        try:
            fired = await _apply(seen, schedule, firing, jobs)
        except UnknownParent:  # one that it should wait for was dropped in this moment: so it has ended
            jobs = await _last_jobs(seen.engine, [schedule])
            firing = firing_of(schedule, seen.now, unfinished=unfinished_of(schedule, jobs))
            fired = await _apply(seen, schedule, firing, jobs)
        if not fired:
            return seen.now  # another controller was first, and knows what is next
        _log_firing(schedule, firing, seen.now)
        if firing.jobs:
            self._spent += droppable(schedule, jobs)
        return end_of_run(schedule, seen.now) if firing.next_at is None else firing.next_at

    async def _drop_spent(self, seen: ScheduleSnapshot) -> None:
        for start in range(0, len(self._spent), BATCH_LIMIT):
            if not seen.term.trusted():
                return
            await seen.engine.jobs.drop(self._spent[start : start + BATCH_LIMIT], now=seen.at)

    async def _count(self, seen: ScheduleSnapshot) -> None:
        """Once in `census`: list the members, fire start-ups, retire what no code declares any more."""
        if self._counted_at is not None and 0 <= seen.now - self._counted_at < self._census:
            return
        self._counted_at = seen.now
        if any(each.source or isinstance(each.timing, Startup) for each in seen.schedules):
            members = await seen.engine.members.list(now=seen.at)
            await self._startups.run(seen, members)
            await self._retirement.run(seen, members)


async def _last_jobs(engine: Engine, schedules: Sequence[Schedule]) -> dict[JobId, JobRecord]:
    """The jobs that may stand in their way and those that they no longer keep, as far as they are known."""
    ids = [job_id for each in schedules for job_id in (each.standing | excess_of(each)).values()]
    found: dict[JobId, JobRecord] = {}
    for start in range(0, len(ids), BATCH_LIMIT):
        jobs = await engine.inspect.get(ids[start : start + BATCH_LIMIT])
        found |= {job.id: job for job in jobs if job is not None}
    return found


async def _apply(
    seen: ScheduleSnapshot, schedule: Schedule, firing: Firing, jobs: Mapping[JobId, JobRecord]
) -> bool:
    fired = await seen.engine.schedules.fire(
        schedule.name,
        tick=schedule.next_at,
        before=schedule.last_at,
        next_at=firing.next_at,
        jobs=firing.jobs,
        last_at=firing.last_at,
        line=firing.line,
        kept=kept_after(schedule, firing.ticks, jobs),
        version=schedule.version,
        now=seen.at,
    )
    return fired is not None


def _wait_s(nexts: Sequence[Instant | None], now: Instant) -> float:
    waits_s = [(next_at - now) / SECOND for next_at in nexts if next_at is not None]
    return max(0.0, min([*waits_s, EVERY_S]))


def _log_firing(schedule: Schedule, firing: Firing, now: Instant) -> None:
    if firing.jobs:
        late_ms = (now - (schedule.next_at or now)) // 1_000
        log.debug("fired %s: %d jobs, %d ms after its tick", schedule.name, len(firing.jobs), late_ms)
    if firing.full:
        log.warning(
            "passed over %s of %s, of which %d jobs wait already (waiting=)",
            "a tick" if firing.full == 1 else f"{firing.full} ticks",
            schedule.name,
            schedule.waiting,
        )
    elif firing.passed_over:
        log.info("a tick of %s was passed over: missed, or the last one has not ended", schedule.name)
