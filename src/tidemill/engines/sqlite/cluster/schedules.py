"""The `schedules` facet."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from tidemill.engine.protocol import Fired
from tidemill.engine.shared.checks import check_jobs, check_pause, check_schedules
from tidemill.engine.shared.schedule_rows import encode_ticks, says, schedule_of
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs import enqueue
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.sqlite", "schedules")


class SqliteSchedules:
    """See `tidemill.engine.protocol.SchedulesFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        check_schedules(schedules, by)

        def work(step: Step) -> None:
            changed = [schedule.name for schedule in schedules if _put(step, schedule)]
            if changed:
                step.audit(by, "put schedule", ", ".join(changed))

        await self._session.write(work, now)

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

        def work(step: Step) -> Fired | None:
            ticks = (None, None) if last_at is None else (encode_ticks(line), encode_ticks(kept))
            row = (last_at, *ticks, next_at, name, tick, before, requested, version, version)
            if step.db.execute(SQL.fire, row).rowcount != 1:
                return None
            stored = enqueue.enqueue(step, jobs)
            step.audit(by, "run schedule", name)
            return Fired(stored)

        return await self._session.write(work, now)

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

        def work(step: Step) -> bool:
            row = step.db.execute(SQL.is_paused, (name,)).fetchone()
            if row is not None and bool(row[0]) != paused:
                step.db.execute(SQL.pause, (paused, name))
                _set_next(step, name, next_at, version)
                step.audit(by, "pause schedule" if paused else "resume schedule", name)
            return row is not None

        return await self._session.write(work, now)

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

        def work(step: Step) -> bool:
            row = step.db.execute(SQL.is_retired, (name,)).fetchone()
            if row is not None and bool(row[0]) != retired:
                step.db.execute(SQL.retire, (step.now if retired else None, name))
                _set_next(step, name, next_at, version)
                step.audit(by, "retire schedule" if retired else "bring back schedule", name)
            return row is not None

        return await self._session.write(work, now)

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        check_pause(name, by)

        def work(step: Step) -> bool:
            removed = step.db.execute(SQL.remove, (name,)).rowcount == 1
            if removed:
                step.audit(by, "remove schedule", name)
            return removed

        return await self._session.write(work, now)

    async def list(self) -> "list[Schedule]":
        found = await self._session.read(lambda db: db.execute(SQL.list).fetchall())
        return [schedule_of(row) for row in found]


def _set_next(step: Step, name: str, next_at: Instant | UnsetType | None, version: int | None) -> None:
    if next_at is not UNSET:
        step.db.execute(SQL.set_next, (next_at, name, version, version))


def _put(step: Step, schedule: Schedule) -> bool:
    """Whether that changed what it does."""
    new = says(schedule)
    row = step.db.execute(SQL.find, (schedule.name,)).fetchone()
    if row is None:
        step.db.execute(SQL.add, (schedule.name, *new, schedule.declared_at, schedule.next_at, step.now))
        return True
    *old, declared_at, next_at, retired_at = row
    if schedule.source and schedule.declared_at < declared_at:
        return False
    changed = tuple(old) != tuple(new) or retired_at is not None
    if changed or schedule.declared_at != declared_at:
        keeps = old[0] == new.timing and retired_at is None
        next_at = next_at if keeps else schedule.next_at
        grows = int(tuple(old) != tuple(new))
        step.db.execute(SQL.change, (*new, schedule.declared_at, next_at, grows, schedule.name))
    return changed
