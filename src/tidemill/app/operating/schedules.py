"""`app.schedules`: all schedules as the engine has them, and what can be done with them at run time."""

import builtins
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

from tidemill.app.accepting import accepts
from tidemill.app.access.link import Link, Work
from tidemill.app.access.session import EngineSession
from tidemill.app.declaring import schedules
from tidemill.app.enqueueing.options import Seconds
from tidemill.app.job import Job
from tidemill.app.operating import schedule_actions
from tidemill.app.task import Call
from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, Refused
from tidemill.model.schedules.schedule import (
    KEEP,
    WAITING_LIMIT,
    Missed,
    Overlap,
    Schedule,
    Timing,
    check_schedule,
)
from tidemill.model.schedules.spoken import state_of, words_of
from tidemill.model.time import moment_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """A schedule as it was when it was read."""

    name: str
    task: str
    queue: str
    when: str
    """In words: "every Sunday at 03:00 Europe/Berlin"."""
    state: Literal["active", "running", "paused", "retired", "ended"]
    """"running": an interval whose run has not ended. "retired": its app's code no longer declares it."""
    next_at: datetime | None
    """None: nothing is due (a run of an interval has not ended, or it has come to its end)."""
    last_at: datetime | None
    """The last tick for which a job was made."""
    missed: Missed
    overlap: Overlap
    waiting: int
    """The most jobs that wait in line with `overlap="queue"`."""
    keep: int | None
    """The completed and cancelled jobs of so many ticks before the last one stay; None: as the queue says."""
    source: str
    """The app whose code declares it; empty: it was made at run time."""


class Schedules:
    """Every method has an async form: `put` and `aput`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @accepts("schedules.put")
    def put(
        self,
        name: str,
        call: Call[Any],
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "skip",
        waiting: int = WAITING_LIMIT,
        keep: int | None = KEEP,
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        """Make a schedule, or replace one of that name: `put("report:7", report.call(7), cron="0 6 * * *")`.
        The options are those of `@app.cron` and `@app.every`. One that code declares is not replaced."""
        timing = _timing(cron, every, tz=tz, jitter=jitter, start=start, end=end)
        self._wait("put", _put(_schedule(name, call, timing, missed, overlap, waiting, keep)))

    @accepts("schedules.aput")
    async def aput(
        self,
        name: str,
        call: Call[Any],
        *,
        cron: str | None = None,
        every: Seconds | None = None,
        tz: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "skip",
        waiting: int = WAITING_LIMIT,
        keep: int | None = KEEP,
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        """`put` for async code."""
        timing = _timing(cron, every, tz=tz, jitter=jitter, start=start, end=end)
        await self._run(_put(_schedule(name, call, timing, missed, overlap, waiting, keep)))

    def list(self) -> "builtins.list[ScheduleInfo]":
        """All of them, by name."""
        return self._wait("list", _list)

    async def alist(self) -> "builtins.list[ScheduleInfo]":
        """`list` for async code."""
        return await self._run(_list)

    def pause(self, name: str) -> None:
        """Fire no more until it is resumed. What runs goes on. `UnknownSchedule` if there is none."""
        self._wait("pause", lambda engine: schedule_actions.pause(engine, name))

    async def apause(self, name: str) -> None:
        """`pause` for async code."""
        await self._run(lambda engine: schedule_actions.pause(engine, name))

    def resume(self, name: str) -> None:
        """Fire again. The ticks of the pause were not missed: they are left out."""
        self._wait("resume", lambda engine: schedule_actions.resume(engine, name))

    async def aresume(self, name: str) -> None:
        """`resume` for async code."""
        await self._run(lambda engine: schedule_actions.resume(engine, name))

    def run(self, name: str) -> Job[Any]:
        """Run it now, paused or not. `Refused` while its last run has not ended, unless its overlap allows
        that."""
        return Job(self._link, self._wait("run", lambda engine: schedule_actions.run_now(engine, name)))

    async def arun(self, name: str) -> Job[Any]:
        """`run` for async code."""
        return Job(self._link, await self._run(lambda engine: schedule_actions.run_now(engine, name)))

    def remove(self, name: str) -> None:
        """Delete it; its jobs stay. One that code declares comes back when the next worker starts."""
        self._wait("remove", lambda engine: schedule_actions.remove(engine, name))

    async def aremove(self, name: str) -> None:
        """`remove` for async code."""
        await self._run(lambda engine: schedule_actions.remove(engine, name))

    def _wait(self, name: str, work: Callable[[Engine], Awaitable[T]]) -> T:
        return self._link.wait(name, _on_engine(work))

    async def _run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        return await self._link.run(_on_engine(work))


def _on_engine(work: Callable[[Engine], Awaitable[T]]) -> Work[T]:
    async def go(session: EngineSession) -> T:
        return await work(session.engine)

    return go


async def _list(engine: Engine) -> list[ScheduleInfo]:
    now = await engine.now()
    return [
        ScheduleInfo(
            name=each.name,
            task=each.job.task,
            queue=each.job.queue,
            when=words_of(each.timing),
            state=state_of(each, now),
            next_at=None if each.next_at is None else moment_of(each.next_at),
            last_at=None if each.last_at is None else moment_of(each.last_at),
            missed=each.missed,
            overlap=each.overlap,
            waiting=each.waiting,
            keep=each.keep,
            source=each.source,
        )
        for each in await engine.schedules.list()
    ]


def _put(schedule: Schedule) -> Callable[[Engine], Awaitable[None]]:
    async def put(engine: Engine) -> None:
        known = [each for each in await engine.schedules.list() if each.name == schedule.name]
        if known and known[0].source and known[0].retired_at is None:
            raise Refused(
                f"the schedule {schedule.name!r} is declared by the code of {known[0].source}: change it "
                "there, or choose another name"
            )
        await schedule_actions.put(engine, schedule)

    return put


def _timing(
    cron: str | None,
    every: Seconds | None,
    *,
    tz: str,
    jitter: Seconds,
    start: datetime | None,
    end: datetime | None,
) -> Timing:
    if cron is not None and every is None:
        return schedules.cron(cron, tz=tz, jitter=jitter, start=start, end=end)
    if every is not None and cron is None:
        return schedules.every(every, jitter=jitter, start=start, end=end)
    raise BadInput("give cron= or every=")


def _schedule(
    name: str,
    call: Call[Any],
    timing: Timing,
    missed: Missed,
    overlap: Overlap,
    waiting: int,
    keep: int | None,
) -> Schedule:
    if not isinstance(call, Call):
        raise BadInput(f"a schedule runs a call, task.call(...), not {type(call).__name__}")
    if call.job.at is not None:
        raise BadInput("a schedule says when its jobs run: leave at= out")
    return check_schedule(
        Schedule(
            name=name,
            timing=timing,
            job=call.job,
            missed=missed,
            overlap=overlap,
            waiting=waiting,
            keep=keep,
        )
    )
