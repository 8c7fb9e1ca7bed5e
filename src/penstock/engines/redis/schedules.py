"""The `schedules` facet."""

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from penstock.engine.edge import check_batch, check_jobs
from penstock.engines.redis.call import Call
from penstock.engines.redis.store import Store
from penstock.model.job import NewJob
from penstock.model.schedule import Schedule, Timing, check_schedule
from penstock.model.time import Instant

_encode = msgspec.json.Encoder(order="sorted").encode
_timing: msgspec.json.Decoder[Timing] = msgspec.json.Decoder(Timing)
_job = msgspec.json.Decoder(NewJob)


class RedisSchedules:
    """See `penstock.engine.protocol.Schedules`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        check_batch(len(schedules))
        for schedule in schedules:
            check_schedule(schedule)
        rows = [
            (
                schedule.name,
                _encode(schedule.timing).decode(),
                # a template's id means nothing: left out, it cannot make two equal schedules look different
                _encode(msgspec.structs.replace(schedule.job, id=bytes(16))).decode(),
                schedule.missed,
                schedule.overlap,
                schedule.source,
                schedule.declared_at,
                schedule.next_at,
            )
            for schedule in schedules
        ]
        await self._store.run(self._store.commands, "put", Call(schedules=rows, by=by), now)

    async def fire(
        self,
        name: str,
        *,
        tick: Instant | None,
        before: Instant | None,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        last_at: Instant | None = None,
        asked: bool = False,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        check_jobs(jobs)
        call = Call(name=name, tick=tick, before=before, next_at=next_at, last_at=last_at, asked=asked, by=by)
        call.values["jobs"] = call.jobs(jobs)
        return bool(await self._store.run(self._store.enqueues, "fire", call, now))

    async def pause(
        self,
        name: str,
        *,
        paused: bool,
        next_at: Instant | UnsetType | None = UNSET,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        call = Call(name=name, paused=paused, next_at=_for_lua(next_at), by=by)
        return bool(await self._store.run(self._store.commands, "pause_schedule", call, now))

    async def retire(
        self,
        name: str,
        *,
        retired: bool,
        next_at: Instant | UnsetType | None = UNSET,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        call = Call(name=name, retired=retired, next_at=_for_lua(next_at), by=by)
        return bool(await self._store.run(self._store.commands, "retire_schedule", call, now))

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        return bool(await self._store.run(self._store.commands, "remove", Call(name=name, by=by), now))

    async def list(self) -> list[Schedule]:
        rows = await self._store.run(self._store.reads, "schedules", Call(), None)
        found = [
            Schedule(
                name=name.decode(),
                timing=_timing.decode(timing),
                job=_job.decode(job),
                missed=missed.decode(),
                overlap=overlap.decode(),
                source=source.decode(),
                declared_at=declared_at,
                next_at=next_at,
                last_at=last_at,
                paused=paused == 1,
                retired_at=retired_at,
                version=version,
            )
            for (
                name, timing, job, missed, overlap, source, declared_at,
                next_at, last_at, paused, retired_at, version,
            ) in rows
        ]  # fmt: skip
        return sorted(found, key=lambda each: each.name)


def _for_lua(next_at: Instant | UnsetType | None) -> Instant | Literal[False] | None:
    """None: nothing is said; False: there is to be none."""
    if next_at is UNSET:
        return None
    return False if next_at is None else next_at
