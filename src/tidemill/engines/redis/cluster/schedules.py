"""The `schedules` facet."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from tidemill.engine.protocol import Fired
from tidemill.engine.shared.checks import check_jobs, check_pause, check_schedules
from tidemill.engine.shared.schedule_rows import encode_ticks, says, schedule_of
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.jobs.enqueue import answers_of
from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant


class RedisSchedules:
    """See `tidemill.engine.protocol.SchedulesFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        check_schedules(schedules, by)
        rows = [_row(schedule) for schedule in schedules]
        await self._store.run(self._store.commands, "put", ScriptCall(schedules=rows, by=by), now)

    async def fire(
        self,
        name: str,
        *,
        tick: Instant | None,
        before: Instant | None,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        last_at: Instant | None = None,
        line: Sequence[Instant] = (),
        kept: Sequence[Instant] = (),
        version: int | None = None,
        requested: bool = False,
        by: str = "",
        now: Instant | None = None,
    ) -> Fired | None:
        check_pause(name, by, version=version)
        check_jobs(jobs)
        call = ScriptCall(
            name=name, tick=tick, before=before, next_at=next_at, last_at=last_at, requested=requested, by=by
        )
        call.values["version"] = version
        call.values["line"] = encode_ticks(line).decode()
        call.values["kept"] = encode_ticks(kept).decode()
        call.values["jobs"] = call.jobs(jobs)
        created = await self._store.run(self._store.enqueues, "fire", call, now)
        return None if created is None else Fired(answers_of(jobs, created))

    async def pause(
        self,
        name: str,
        *,
        paused: bool,
        next_at: Instant | UnsetType | None = UNSET,
        version: int | None = None,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        check_pause(name, by, version=version)
        call = ScriptCall(name=name, paused=paused, next_at=_for_lua(next_at), version=version, by=by)
        return bool(await self._store.run(self._store.commands, "pause_schedule", call, now))

    async def retire(
        self,
        name: str,
        *,
        retired: bool,
        next_at: Instant | UnsetType | None = UNSET,
        version: int | None = None,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        check_pause(name, by, version=version)
        call = ScriptCall(name=name, retired=retired, next_at=_for_lua(next_at), version=version, by=by)
        return bool(await self._store.run(self._store.commands, "retire_schedule", call, now))

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        check_pause(name, by)
        return bool(await self._store.run(self._store.commands, "remove", ScriptCall(name=name, by=by), now))

    async def list(self) -> "list[Schedule]":
        rows = await self._store.run(self._store.reads, "schedules", ScriptCall(), None)
        return sorted(map(schedule_of, rows), key=lambda each: each.name)


def _row(schedule: Schedule) -> tuple[object, ...]:
    """As `put.lua` reads it, which knows no bytes here."""
    stored = says(schedule)
    texts = stored._replace(timing=stored.timing.decode(), job=stored.job.decode())  # type: ignore[arg-type]
    return (schedule.name, *texts, schedule.declared_at, schedule.next_at)


def _for_lua(next_at: Instant | UnsetType | None) -> Instant | Literal[False] | None:
    """None: nothing is said; False: there is to be none."""
    if next_at is UNSET:
        return None
    return False if next_at is None else next_at
