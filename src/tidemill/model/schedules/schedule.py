"""Schedules: when the next job is due, and which job that is. `firing` says what becomes of a tick.

A tick is the instant for which a job is fired. The job's id is made from schedule and tick, so that
a second firing of the same tick is the same job, whichever process fires it.
"""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId, id_at
from tidemill.model.jobs.job import NewJob, check_new_job
from tidemill.model.names import check_task
from tidemill.model.time import Instant, Span, instant_of, moment_of, span_of

Missed = Literal["skip", "once", "all"]
"""What becomes of ticks that were not fired in time: nothing, one job for all of them, or one each."""
Overlap = Literal["skip", "queue", "allow"]
"""What becomes of a tick while the last tick's job has not ended: nothing, a job that stands in line behind
it and all others that have not ended, or a job beside it."""
WAITING_LIMIT = 100
"""The most jobs that may wait in the line of `overlap="queue"`: each waits for all before it."""
KEEP = 100
"""Of how many ticks a cron or an interval keeps the jobs, unless it says something else."""
KEEP_LIMIT = 1_000
"""The most that `keep` may be: the schedule's row has a tick for each of them."""

PROGRAM = "(program)"
"""The source of schedules of an app that no module has by name: it may stand for several programs."""


class Cron(msgspec.Struct, frozen=True, kw_only=True, tag="cron"):
    """Five or six fields in a time zone; right at both changes of daylight saving."""

    fields: str
    tz: str = "UTC"
    jitter: float = 0.0
    """Each job becomes ready up to this many seconds after its tick."""
    start: Instant | None = None
    """No tick before this moment ..."""
    end: Instant | None = None
    """... nor after this one."""

    def __post_init__(self) -> None:
        _check_bounds(self.jitter, self.start, self.end)

    def check(self) -> "Cron":
        """The same, or `BadInput`. Called where a schedule is declared, not where it is read: a time zone
        that this host does not know must not hide all schedules. It costs as much as computing a tick."""
        self.next_after(0)
        return self

    def first_from(self, now: Instant) -> Instant | None:
        """The first tick after now that lies within start and end."""
        return self.following(max(now, (self.start or 0) - 1))

    def following(self, moment: Instant) -> Instant | None:
        """The first tick after this moment; None: that would be after the end."""
        tick = self.next_after(moment)
        return None if self.end is not None and tick > self.end else tick

    def next_after(self, moment: Instant) -> Instant:
        """The first tick after this moment, whatever the end."""
        return next(self.ticks_after(moment))

    def ticks_after(self, moment: Instant) -> Iterator[Instant]:
        """All ticks after this moment, whatever the end; or `BadInput`."""
        try:
            found = CronSim(self.fields, moment_of(moment).astimezone(ZoneInfo(self.tz)))
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise BadInput(f"{self.tz!r} is not a time zone such as Europe/Berlin: {error}") from None
        except CronSimError as error:
            raise BadInput(
                f'{self.fields!r} is not a cron expression such as "0 3 * * sun": {error}'
            ) from None
        last = moment
        for each in found:
            tick = instant_of(each)
            # A fixed time in the hour that comes twice is a tick of the first pass; from a moment in the
            # second one CronSim begins with that, which lies in the past.
            if tick > last:
                yield tick
                last = tick
        raise BadInput(f"{self.fields!r} never comes due: check day and month")


class Every(msgspec.Struct, frozen=True, kw_only=True, tag="every"):
    """An interval counted from the end of the last run."""

    seconds: float
    jitter: float = 0.0
    start: Instant | None = None
    end: Instant | None = None

    def __post_init__(self) -> None:
        if span_of(self.seconds) == 0:
            raise BadInput("an interval must be longer than 0 s")
        _check_bounds(self.jitter, self.start, self.end)

    @property
    def span(self) -> Span:
        return span_of(timedelta(seconds=self.seconds))

    def first_from(self, now: Instant) -> Instant | None:
        """Now, or at the start; None: that is after the end."""
        tick = max(now, self.start or 0)
        return None if self.end is not None and tick > self.end else tick

    def next_after(self, moment: Instant) -> Instant:
        """One interval later."""
        return moment + self.span


class Startup(msgspec.Struct, frozen=True, kw_only=True, tag="startup"):
    """Once for every start of the cluster; its tick is the moment of that start."""

    def first_from(self, now: Instant) -> Instant | None:
        """No time makes it due."""
        return None


Timing: TypeAlias = Cron | Every | Startup


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as the engine keeps it."""

    name: str
    timing: Timing
    job: NewJob
    """The template: its id is ignored."""
    missed: Missed = "once"
    overlap: Overlap = "skip"
    waiting: int = WAITING_LIMIT
    """With `overlap="queue"`, the most jobs that wait behind the first of the line: a tick that finds so many
    is passed over."""
    keep: int | None = None
    """The completed and cancelled jobs of so many ticks stay, besides the job of the last tick. (The queue
    may keep fewer.) None: as the queue says. See `keeping`."""
    source: str = ""
    """The app whose code declares it, `module:attribute`; empty: it was made at run time."""
    declared_at: Instant = 0
    """When the worker began whose code says this: an older worker's word does not replace it."""
    next_at: Instant | None = None
    """None: nothing is due until it is set (a run in progress, or ended)."""
    last_at: Instant | None = None
    """The last tick for which a job was made."""
    line: tuple[Instant, ...] = ()
    """With `overlap="queue"`, the ticks before that one whose jobs had not ended when it was fired."""
    kept: tuple[Instant, ...] = ()
    """With `keep`, the ticks whose jobs may still be there, in the order in which they were fired."""
    paused: bool = False
    retired_at: Instant | None = None
    """Since when no worker of its app declares it any more: it does not fire."""
    version: int = 0
    """Grows with every `put` that changed what it does."""

    @property
    def fires(self) -> bool:
        """Neither paused nor retired."""
        return not self.paused and self.retired_at is None

    @property
    def last_job(self) -> JobId | None:
        """The job of its last tick."""
        return None if self.last_at is None else tick_id(self.name, self.last_at)

    @property
    def standing(self) -> dict[Instant, JobId]:
        """The jobs that may stand in its way, by their ticks, oldest first: of `overlap="queue"` all that had
        not ended, otherwise the last one."""
        ticks = () if self.last_at is None else (self.last_at,)
        if self.overlap == "queue":
            ticks = (*self.line, *ticks)
        return {tick: tick_id(self.name, tick) for tick in ticks}


def check_schedule(schedule: Schedule) -> Schedule:
    """The same schedule, or `BadInput`."""
    check_task(schedule.name)
    check_new_job(schedule.job)
    if isinstance(schedule.timing, Cron):
        schedule.timing.check()
    if schedule.missed not in get_args(Missed):
        raise BadInput(f'missed is "skip", "once" or "all", not {schedule.missed!r}')
    if schedule.overlap not in get_args(Overlap):
        raise BadInput(f'overlap is "skip", "queue" or "allow", not {schedule.overlap!r}')
    if type(schedule.waiting) is not int or not 1 <= schedule.waiting <= WAITING_LIMIT:
        raise BadInput(f"waiting is a number of jobs from 1 to {WAITING_LIMIT}, not {schedule.waiting!r}")
    keep = schedule.keep
    if keep is not None and (type(keep) is not int or not 0 <= keep <= KEEP_LIMIT):
        raise BadInput(
            f"keep is a number of jobs from 0 to {KEEP_LIMIT:,}, or None (as the queue says), not {keep!r}"
        )
    if schedule.missed == "all" and schedule.overlap == "skip" and isinstance(schedule.timing, Cron):
        raise BadInput(
            'missed="all" makes several jobs at once, and overlap="skip" admits one: use overlap="queue" '
            '(one after the other) or "allow"'
        )
    if schedule.job.after:
        raise BadInput("the job of a schedule cannot wait for others (after=)")
    if schedule.job.unique is not None and schedule.job.unique.on_conflict == "refuse":
        raise BadInput(
            'the job of a schedule cannot have on_conflict="refuse", because nobody would get the error: '
            '"existing" passes over a tick whose key is held'
        )
    return schedule


def _check_bounds(jitter: float, start: Instant | None, end: Instant | None) -> None:
    span_of(jitter)
    if start is not None and end is not None and start > end:
        raise BadInput(
            f"a schedule's start ({moment_of(start)}) must not lie after its end ({moment_of(end)})"
        )


def tick_id(schedule: str, tick: Instant) -> JobId:
    """The id of the job that a schedule fires for a tick: its time in the time bits, a hash of both
    in the rest."""
    digest = hashlib.blake2b(f"{schedule}\0{tick}".encode(), digest_size=10).digest()
    return id_at(tick, digest)
