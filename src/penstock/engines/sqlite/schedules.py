"""The `schedules` facet."""

import time
from collections.abc import Sequence

import msgspec

from penstock.engine.edge import check_batch, check_jobs
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import enqueue
from penstock.engines.sqlite.step import Step
from penstock.engines.sqlite.store import Session
from penstock.model.job import NewJob, check_new_job
from penstock.model.names import check_task
from penstock.model.schedule import Schedule, Timing
from penstock.model.time import Instant

SQL = load_statements(__package__, "schedules")

_encode = msgspec.json.Encoder(order="sorted").encode
_timing: msgspec.json.Decoder[Timing] = msgspec.json.Decoder(Timing)
_job = msgspec.json.Decoder(NewJob)


class SqliteSchedules:
    """See `penstock.engine.protocol.Schedules`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        check_batch(len(schedules))
        for schedule in schedules:
            check_task(schedule.name)
            check_new_job(schedule.job)

        def work(step: Step) -> None:
            changed = [schedule.name for schedule in schedules if _put(step, schedule)]
            if changed:
                step.audit(by, "put schedule", ", ".join(changed))

        await self._session.write(work, now)

    async def fire(
        self,
        name: str,
        *,
        tick: Instant,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        now: Instant | None = None,
    ) -> bool:
        check_jobs(jobs)

        def work(step: Step) -> bool:
            fired = step.db.execute(SQL.fire, (tick, next_at, name, tick)).rowcount == 1
            if fired:
                enqueue.enqueue(step, jobs)
            return fired

        return await self._session.write(work, now)

    async def pause(self, name: str, *, paused: bool, by: str = "", now: Instant | None = None) -> bool:
        def work(step: Step) -> bool:
            row = step.db.execute(SQL.is_paused, (name,)).fetchone()
            if row is not None and bool(row[0]) != paused:
                step.db.execute(SQL.pause, (paused, name))
                step.audit(by, "pause schedule" if paused else "resume schedule", name)
            return row is not None

        return await self._session.write(work, now)

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        def work(step: Step) -> bool:
            removed = step.db.execute(SQL.remove, (name,)).rowcount == 1
            if removed:
                step.audit(by, "remove schedule", name)
            return removed

        return await self._session.write(work, now)

    async def list(self, *, due: bool = False, now: Instant | None = None) -> list[Schedule]:
        at = time.time_ns() // 1_000 if now is None else now
        statement, parameters = (SQL.due, (at,)) if due else (SQL.list, ())
        found = await self._session.read(lambda db: db.execute(statement, parameters).fetchall())
        return [
            Schedule(
                name=name,
                timing=_timing.decode(timing),
                job=_job.decode(job),
                missed=missed,
                next_at=next_at,
                last_at=last_at,
                paused=bool(paused),
                version=version,
            )
            for name, timing, job, missed, next_at, last_at, paused, version in found
        ]


def _put(step: Step, schedule: Schedule) -> bool:
    """Whether that changed anything."""
    timing = _encode(schedule.timing)
    # a template's id means nothing: left out, it cannot make two equal schedules look different
    job = _encode(msgspec.structs.replace(schedule.job, id=bytes(16)))
    row = step.db.execute(SQL.find, (schedule.name,)).fetchone()
    if row is None:
        step.db.execute(SQL.add, (schedule.name, timing, job, schedule.missed, schedule.next_at))
    elif row[:3] == (timing, job, schedule.missed):
        return False
    else:
        next_at = row[3] if row[0] == timing else schedule.next_at
        step.db.execute(SQL.change, (timing, job, schedule.missed, next_at, schedule.name))
    return True
