"""What people do with schedules: the same for programs and for the command line."""

import msgspec
from msgspec import UNSET

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, Refused, UnknownParent, UnknownSchedule
from tidemill.model.ids import JobId, show_id
from tidemill.model.names import nearest
from tidemill.model.schedules.firing import job_of, room_in_line, unfinished_of
from tidemill.model.schedules.keeping import kept_after
from tidemill.model.schedules.schedule import Cron, Every, Schedule, tick_id
from tidemill.model.time import Instant

TRIES = 5
"""A schedule may fire at the moment of the request, another caller may request a run too, or a job of its
line may be dropped. Then the schedule is read again."""


async def find(engine: Engine, name: str) -> Schedule:
    """The schedule, or `UnknownSchedule` with the nearest name."""
    if not isinstance(name, str):
        raise BadInput(f"a schedule's name is a text, not {type(name).__name__}")
    found = {each.name: each for each in await engine.schedules.list()}
    if name not in found:
        raise UnknownSchedule(f"there is no schedule {name!r}{nearest(name, found)}")
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
    first = timing.first_from(now) if stale else UNSET
    await engine.schedules.pause(name, paused=False, next_at=first, version=schedule.version, by=by)


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
        unfinished = await _unfinished(engine, schedule)
        interval = isinstance(schedule.timing, Every)
        if unfinished and (interval or schedule.overlap == "skip"):
            last = tick_id(name, unfinished[-1])
            raise Refused(f"the last run of {name!r} has not ended: job {show_id(last)}")
        if not room_in_line(schedule, unfinished):
            wait = f"job of {name!r} waits" if schedule.waiting == 1 else f"jobs of {name!r} wait"
            raise Refused(
                f"{schedule.waiting} {wait} already, the most that the schedule allows; run it again when "
                "one has ended"
            )
        now = await engine.now()
        after = unfinished if schedule.overlap == "queue" else []
        job = msgspec.structs.replace(job_of(schedule, now, after=after), at=None)
        try:
            fired = await engine.schedules.fire(
                name,
                tick=schedule.next_at,
                before=schedule.last_at,
                next_at=None if interval else schedule.next_at,
                jobs=[job],
                last_at=now,
                line=after,
                kept=kept_after(schedule, [now]),
                version=schedule.version,
                requested=True,
                by=by,
            )
        except UnknownParent:  # one that it should wait for was dropped in this moment: so it has ended
            continue
        if fired is not None:
            return job.id
    raise Refused(f"the schedule {name!r} changes all the time; try again")


async def _unfinished(engine: Engine, schedule: Schedule) -> list[Instant]:
    """The ticks of its last jobs that have not ended."""
    found = await engine.inspect.get(list(schedule.standing.values()))
    return unfinished_of(schedule, {job.id: job for job in found if job is not None})
