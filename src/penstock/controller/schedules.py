"""Schedules fire here: due ticks become jobs, exactly once each, at their time.

One run reads all schedules, fires those that are due (`model.firing` says with which jobs), and answers when
the next is. Whoever fires second finds another `next_at` and changes nothing, so that a controller that dies
before, in or after a firing, or two at once, leave one job per tick.

**Intervals.** While a run of an interval has not ended, nothing is due, and the end of the run sets the next
time. A look at least once in every interval finds that before it comes due. A job that ended without setting
it (cancelled, expired, dropped, its last crash) is found by the same looks, and the time is set here.

**Nothing wakes a controller** when a schedule is put, resumed or asked for: the next look comes within a
second.
"""

import logging
import time
from collections.abc import Sequence

from penstock.controller.look import HandClock, Look, look
from penstock.controller.retirement import GRACE, Retirement
from penstock.controller.startups import Startups
from penstock.controller.tick import Term
from penstock.engine.protocol import Engine
from penstock.model.errors import BadInput, UnknownParent
from penstock.model.firing import Firing, after_end, firing_of
from penstock.model.ids import JobId
from penstock.model.job import LIVE, Job
from penstock.model.schedule import Every, Schedule, Startup
from penstock.model.time import MILLISECOND, SECOND, Instant, Span

EVERY_S = 1.0
FIRE_LIMIT = 100
"""The most schedules that one run fires."""
SHORTEST_LOOK: Span = 50 * MILLISECOND
"""Between looks at an interval whose run is under way."""
CENSUS: Span = 2 * SECOND
"""How often the members are asked about start-ups and retired schedules."""

log = logging.getLogger("penstock.controller")


class ScheduleTick:
    """See `penstock.controller.tick.Tick`. `clock`: for tests that move the time by hand."""

    name = "schedules"
    every = EVERY_S

    def __init__(self, *, grace: Span = GRACE, census: Span = CENSUS, clock: HandClock | None = None) -> None:
        self._startups = Startups()
        self._retirement = Retirement(grace)
        self._census = census
        self._counted_at: Instant | None = None
        self._clock = clock
        self._complained: dict[str, Instant | None] = {}

    async def run(self, engine: Engine, term: Term) -> float | None:
        began = time.monotonic()
        seen = await look(engine, term, self._clock)
        open_ones = [each for each in seen.schedules if each.fires]
        due = sorted(
            (each for each in open_ones if each.next_at is not None and each.next_at <= seen.now),
            key=lambda each: each.next_at or 0,
        )
        under_way = [each for each in open_ones if _is_under_way(each, seen.now)]
        jobs = await _last_jobs(engine, [*due[:FIRE_LIMIT], *under_way])
        nexts = [each.next_at for each in open_ones if each.next_at is None or each.next_at > seen.now]
        for schedule in due[:FIRE_LIMIT]:
            if not term.trusted():
                return None
            try:
                nexts.append(await _fire(seen, schedule, jobs))
            except BadInput as error:  # one that cannot be fired must not keep the others from it
                self._complain(schedule, error)
        nexts += [await _catch_up(seen, schedule, jobs) for schedule in under_way]
        await self._count(seen)
        if len(due) > FIRE_LIMIT:
            return 0
        took = round((time.monotonic() - began) * SECOND)
        return _wait_s(nexts, seen.now + took)

    def _complain(self, schedule: Schedule, error: BadInput) -> None:
        """Once for each of its ticks."""
        if self._complained.get(schedule.name) != schedule.next_at:
            self._complained[schedule.name] = schedule.next_at
            log.error("the schedule %s cannot be fired: %s", schedule.name, error)

    async def _count(self, seen: Look) -> None:
        """Now and then, look at who is there: for start-ups, and for what nobody declares any more."""
        if self._counted_at is not None and 0 <= seen.now - self._counted_at < self._census:
            return
        self._counted_at = seen.now
        if any(each.source or isinstance(each.timing, Startup) for each in seen.schedules):
            members = await seen.engine.members.list(now=seen.at)
            await self._startups.run(seen, members)
            await self._retirement.run(seen, members)


async def _last_jobs(engine: Engine, schedules: Sequence[Schedule]) -> dict[JobId, Job]:
    """The jobs of their last ticks, as far as they are still known."""
    ids = [each.last_job for each in schedules if each.last_job is not None]
    found: dict[JobId, Job] = {}
    for start in range(0, len(ids), FIRE_LIMIT):
        jobs = await engine.inspect.get(ids[start : start + FIRE_LIMIT])
        found |= {job.id: job for job in jobs if job is not None}
    return found


async def _fire(seen: Look, schedule: Schedule, jobs: dict[JobId, Job]) -> Instant | None:
    """Fire one; when to look at it next."""
    last = None if schedule.last_job is None else jobs.get(schedule.last_job)
    previous = last.id if last is not None and last.state in LIVE else None
    firing = firing_of(schedule, seen.now, previous=previous)
    try:
        fired = await _apply(seen, schedule, firing)
    except UnknownParent:  # what it should wait for was dropped in this moment: so it has ended
        firing = firing_of(schedule, seen.now)
        fired = await _apply(seen, schedule, firing)
    if not fired:
        return seen.now  # somebody else was first, and knows what is next
    _tell(schedule, firing, seen.now)
    return _end_of_run(schedule, seen.now) if firing.next_at is None else firing.next_at


async def _apply(seen: Look, schedule: Schedule, firing: Firing) -> bool:
    return await seen.engine.schedules.fire(
        schedule.name,
        tick=schedule.next_at,
        before=schedule.last_at,
        next_at=firing.next_at,
        jobs=firing.jobs,
        last_at=firing.last_at,
        now=seen.at,
    )


async def _catch_up(seen: Look, schedule: Schedule, jobs: dict[JobId, Job]) -> Instant | None:
    """An interval without a next time: set it, if its job has ended all the same."""
    assert isinstance(schedule.timing, Every)
    last = None if schedule.last_job is None else jobs.get(schedule.last_job)
    next_at = after_end(schedule.timing, last, seen.now)
    if next_at is None:
        return _end_of_run(schedule, seen.now)
    await seen.engine.schedules.fire(
        schedule.name, tick=None, before=schedule.last_at, next_at=next_at, jobs=(), now=seen.at
    )
    return next_at


def _is_under_way(schedule: Schedule, now: Instant) -> bool:
    """An interval that waits for the end of a run, as far as its record tells."""
    timing = schedule.timing
    return (
        isinstance(timing, Every)
        and schedule.next_at is None
        and schedule.last_at is not None
        and (timing.end is None or now <= timing.end)
    )


def _end_of_run(schedule: Schedule, now: Instant) -> Instant | None:
    """When to look for the time that the end of an interval's run sets: it lies a whole interval ahead."""
    timing = schedule.timing
    return now + max(timing.span // 2, SHORTEST_LOOK) if isinstance(timing, Every) else None


def _wait_s(nexts: Sequence[Instant | None], now: Instant) -> float:
    waits_s = [(next_at - now) / SECOND for next_at in nexts if next_at is not None]
    return max(0.0, min([*waits_s, EVERY_S]))


def _tell(schedule: Schedule, firing: Firing, now: Instant) -> None:
    if firing.jobs:
        late_ms = (now - (schedule.next_at or now)) // 1_000
        log.debug("fired %s: %d jobs, %d ms after its tick", schedule.name, len(firing.jobs), late_ms)
    elif firing.passed_over:
        log.info("a tick of %s was passed over: missed, or the last one has not ended", schedule.name)
