"""The `schedules` facet."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from tidemill.engine.protocol import Fired
from tidemill.engine.shared.checks import check_jobs, check_pause, check_schedules
from tidemill.engine.shared.records import stored_of
from tidemill.engine.shared.schedule_rows import Says, encode_ticks, says, schedule_of
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs.arrays import job_arrays, parent_arrays, unique_parameters
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.postgres", "schedules")


class PostgresSchedules:
    """See `tidemill.engine.protocol.SchedulesFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        check_schedules(schedules, by)
        columns = zip(*map(says, schedules), strict=True) if schedules else [()] * len(Says._fields)
        await self._store.call(
            self._store.commands, "put_schedules_v1",
            [schedule.name for schedule in schedules], *map(list, columns),
            [schedule.declared_at for schedule in schedules],
            [schedule.next_at for schedule in schedules], by, now,
        )  # fmt: skip

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
        store, uniques = self._store, unique_parameters(jobs)
        arrays = [*job_arrays(jobs), *parent_arrays(jobs), uniques]
        ticks = (encode_ticks(line), encode_ticks(kept))
        said = (name, tick, before, next_at, last_at, *ticks, version, requested, by)
        fired, met, created, _ = await store.change(store.enqueues, "fire_v1", *said, *arrays, now)
        if fired and uniques is not None:
            return Fired(list(map(Stored, map(bytes, met), created)))
        return Fired(stored_of(jobs, created)) if fired else None

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
        said = (name, paused, next_at is not UNSET, _or_none(next_at), version, by)
        (known,) = await self._store.call(self._store.commands, "pause_schedule_v1", *said, now)
        return bool(known)

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
        said = (name, retired, next_at is not UNSET, _or_none(next_at), version, by)
        (known,) = await self._store.call(self._store.commands, "retire_schedule_v1", *said, now)
        return bool(known)

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        check_pause(name, by)
        (removed,) = await self._store.call(self._store.commands, "remove_schedule_v1", name, by, now)
        return bool(removed)

    async def list(self) -> "list[Schedule]":
        return [schedule_of(row) for row in await self._store.read(SQL.list)]


def _or_none(next_at: Instant | UnsetType | None) -> Instant | None:
    return None if next_at is UNSET else next_at
