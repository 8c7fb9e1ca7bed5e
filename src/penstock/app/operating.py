"""What people do with schedules: the same for programs and for the command line."""

from difflib import get_close_matches

import msgspec
from msgspec import UNSET

from penstock.engine.protocol import Engine
from penstock.model.errors import Refused, UnknownSchedule
from penstock.model.firing import job_of
from penstock.model.ids import JobId, show_id
from penstock.model.job import LIVE
from penstock.model.schedule import Cron, Every, Schedule

TRIES = 5
"""A schedule may fire just while it is asked to run, or somebody else asks: then it is looked at again."""


async def find(engine: Engine, name: str) -> Schedule:
    """The schedule, or `UnknownSchedule` with the nearest name."""
    found = {each.name: each for each in await engine.schedules.list()}
    if name not in found:
        near = get_close_matches(name, found, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownSchedule(f"there is no schedule {name!r}{hint}")
    return found[name]


async def put(engine: Engine, schedule: Schedule, *, by: str = "") -> None:
    """Make it, with its first tick from now on."""
    next_at = schedule.timing.first_from(await engine.now())
    await engine.schedules.put([msgspec.structs.replace(schedule, next_at=next_at)], by=by)


async def pause(engine: Engine, name: str, *, by: str = "") -> None:
    """Fire no more."""
    if not await engine.schedules.pause(name, paused=True, by=by):
        await find(engine, name)


async def resume(engine: Engine, name: str, *, by: str = "") -> None:
    """Fire again; a cron from its next tick on."""
    schedule, now = await find(engine, name), await engine.now()
    timing, next_at = schedule.timing, schedule.next_at
    stale = isinstance(timing, Cron) and next_at is not None and next_at <= now
    # that its end came in the pause (None) is something else than: leave the time as it is
    await engine.schedules.pause(
        name, paused=False, next_at=timing.first_from(now) if stale else UNSET, by=by
    )


async def remove(engine: Engine, name: str, *, by: str = "") -> None:
    """Delete it."""
    if not await engine.schedules.remove(name, by=by):
        await find(engine, name)


async def run_now(engine: Engine, name: str, *, by: str = "") -> JobId:
    """Fire it now, at a tick of its own; the job's id."""
    for _ in range(TRIES):
        schedule = await find(engine, name)
        if schedule.retired_at is not None:
            raise Refused(f"the schedule {name!r} is retired: the code of {schedule.source} has it no longer")
        previous = await _unfinished(engine, schedule)
        interval = isinstance(schedule.timing, Every)
        if previous is not None and (interval or schedule.overlap == "skip"):
            raise Refused(f"the last run of {name!r} has not ended: job {show_id(previous)}")
        now = await engine.now()
        after = (previous,) if previous is not None and schedule.overlap == "queue" else ()
        job = msgspec.structs.replace(job_of(schedule, now, after=after), at=None)
        fired = await engine.schedules.fire(
            name,
            tick=schedule.next_at,
            before=schedule.last_at,
            next_at=None if interval else schedule.next_at,
            jobs=[job],
            last_at=now,
            asked=True,
            by=by,
        )
        if fired:
            return job.id
    raise Refused(f"the schedule {name!r} changes all the time; try again")


async def _unfinished(engine: Engine, schedule: Schedule) -> JobId | None:
    """Its last job, if that has not ended."""
    if schedule.last_job is None:
        return None
    (job,) = await engine.inspect.get([schedule.last_job])
    return job.id if job is not None and job.state in LIVE else None
