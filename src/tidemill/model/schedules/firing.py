"""Firing: from a tick that has come to the jobs that it makes.

    due tick -> which ticks count (missed) -> which of them may start (overlap) -> jobs, and the next tick

Everything here follows from the schedule's record, the tick and the engine's clock, so that two controllers
that fire the same tick make the same jobs, and the second changes nothing.

**An interval** has no next tick while a job of it has not ended: it is fired with `next_at=None`, and the end
of the run sets the next time in the same step as the outcome (`then_of`). Where the job ends in another way
(cancelled, expired, crashed for the last time, dropped), or the schedule has changed since it was fired, no
step sets it: the controller does (`after_end`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

import msgspec

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import FINAL, JobRecord, NewJob
from tidemill.model.jobs.run import Completed, Failed, Outcome, Stopped, Then
from tidemill.model.schedules.schedule import Cron, Every, Schedule, tick_id
from tidemill.model.time import MINUTE, SECOND, Instant, Span, span_of

MISSED_LIMIT = 100
"""The most jobs that `missed="all"` makes at once: the latest ones; older ticks are passed over."""
ON_TIME: Span = MINUTE
"""With `missed="skip"`, a tick that is fired no later than this was not missed."""
EVERY = "every_s"
"""The header by which a job tells its worker that the end of its run sets the next one."""
VERSION = "every_version"
"""That of the schedule that fired it: a schedule that was changed meanwhile has its next time already."""


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a due schedule."""

    jobs: tuple[NewJob, ...] = ()
    next_at: Instant | None = None
    last_at: Instant | None = None
    """The tick of the last of the jobs; None: there are none."""
    ticks: tuple[Instant, ...] = ()
    """Those of the jobs."""
    line: tuple[Instant, ...] = ()
    """The ticks whose jobs that one waits for."""
    passed_over: int = 0
    """Ticks for which no job is made."""
    full: int = 0
    """Those of them for which there was no room in the line."""


def firing_of(schedule: Schedule, now: Instant, *, unfinished: Sequence[Instant] = ()) -> Firing:
    """For a schedule whose `next_at` has come. `unfinished`: those of its `standing` whose jobs have not
    ended."""
    timing, tick = schedule.timing, schedule.next_at
    assert tick is not None, "only what is due is fired"
    if isinstance(timing, Cron):
        return _of_cron(schedule, timing, tick, now, unfinished)
    if isinstance(timing, Every) and not (timing.end is not None and tick > timing.end):
        if unfinished:  # its end sets the next time
            return Firing(passed_over=1)
        return Firing(jobs=(job_of(schedule, tick),), last_at=tick, ticks=(tick,))
    return Firing()


def _of_cron(
    schedule: Schedule, timing: Cron, tick: Instant, now: Instant, unfinished: Sequence[Instant]
) -> Firing:
    if timing.next_after(tick - 1) != tick:  # the rules of its time zone have changed since it was set
        return Firing(next_at=timing.following(tick))
    until = now if timing.end is None else min(now, timing.end)
    ticks = latest_ticks(timing, tick, until, MISSED_LIMIT if schedule.missed == "all" else 1)
    if schedule.missed == "skip":
        ticks = [each for each in ticks if now - each <= ON_TIME]
    if schedule.overlap == "skip" and unfinished:
        ticks = []
    room = room_in_line(schedule, unfinished)
    full = max(0, len(ticks) - room)
    line = list(unfinished) if schedule.overlap == "queue" else []
    jobs: list[NewJob] = []
    for each in ticks[full:]:
        jobs.append(job_of(schedule, each, after=line))
        if schedule.overlap == "queue":
            line.append(each)
    next_at = timing.following(now)
    assert next_at is None or next_at > now, "a tick that has been fired would be fired again"
    return Firing(
        jobs=tuple(jobs),
        next_at=next_at,
        last_at=ticks[-1] if jobs else None,
        ticks=tuple(ticks[full:]),
        line=tuple(line[:-1]),
        passed_over=full or (0 if jobs else 1),
        full=full,
    )


def unfinished_of(schedule: Schedule, jobs: Mapping[JobId, JobRecord]) -> list[Instant]:
    """The ticks of its last jobs that have not ended; one that is not known any more has."""
    standing = schedule.standing
    return [tick for tick, job_id in standing.items() if job_id in jobs and jobs[job_id].state not in FINAL]


def room_in_line(schedule: Schedule, unfinished: Sequence[Instant]) -> int:
    """For how many more jobs there is room: with `overlap="queue"` one runs and `waiting` may wait."""
    if schedule.overlap != "queue":
        return MISSED_LIMIT
    return max(0, schedule.waiting + 1 - len(unfinished))


def latest_ticks(timing: Cron, first: Instant, until: Instant, most: int) -> list[Instant]:
    """The last of the ticks from `first` to `until`. A year of seconds is not counted one by one:
    the search goes back from the end, each time twice as far. A try that finds too many ticks (an hour whose
    every second is one) breaks off. The next try starts between it and the one that found too few."""
    enough, crowded = 4 * most, False
    near, far = until, first - 1
    start = max(far, until - 2 * SECOND)
    while True:
        found = list(islice(takewhile(lambda tick: tick <= until, timing.ticks_after(start)), enough + 1))
        if len(found) > enough:
            far, crowded = start, True
        elif len(found) >= most or start < first:
            return found[-most:]
        else:
            near = start
        start = (near + far) // 2 if crowded else max(far, until - 2 * (until - near))


def job_of(schedule: Schedule, tick: Instant, *, after: Sequence[Instant] = ()) -> NewJob:
    """The job of a tick: the same for every caller. `after`: the ticks of those before it in its line.
    It waits for each of them, however they end: waiting for the last alone, it would start beside the first
    as soon as one between them is cancelled."""
    template, timing = schedule.job, schedule.timing
    changes: dict[str, Any] = {"id": tick_id(schedule.name, tick), "schedule": schedule.name}
    jitter = 0.0 if not isinstance(timing, Cron | Every) else timing.jitter
    if jitter:
        changes |= {"at": tick + jitter_of(schedule.name, tick, span_of(jitter)) + template.delay, "delay": 0}
    if isinstance(timing, Every):
        changes["headers"] = _with_interval(template.headers, timing.seconds, schedule.version)
    if after:
        parents = tuple(tick_id(schedule.name, each) for each in after)
        changes |= {"after": parents, "parent_died": "run"}
    return msgspec.structs.replace(template, **changes)


def jitter_of(schedule: str, tick: Instant, most: Span) -> Span:
    """A part of `most`, always the same for one tick, spread evenly over schedules and ticks."""
    digest = hashlib.blake2b(f"{schedule}\0{tick}\0jitter".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") * most >> 64


def then_of(schedule: str, headers: bytes | None, outcome: Outcome) -> Then | None:
    """What goes with the outcome of a scheduled job: at the end of an interval's run, the next one's time. (A
    crash may or may not be the end, and a job that will be tried again has not ended.)"""
    if isinstance(outcome, Failed) and outcome.retry_in is not None:
        return None
    said = _headers(headers)
    seconds, version = said.get(EVERY), said.get(VERSION)
    if not isinstance(outcome, Completed | Failed | Stopped) or not isinstance(seconds, int | float):
        return None
    if type(version) is not int:
        return None
    return Then(schedule=schedule, schedule_in=span_of(seconds), schedule_version=version)


def after_end(timing: Every, job: JobRecord | None, now: Instant) -> Instant | None:
    """When an interval fires next whose last job was not settled: one interval after that job's end, or from
    now if nothing is known of it any more. None: the job has not ended."""
    if job is not None and job.state not in FINAL:
        return None
    ended_at = now if job is None or job.ended_at is None else job.ended_at
    return max(now, timing.next_after(ended_at))


def _with_interval(headers: bytes | None, seconds: float, version: int) -> bytes:
    return msgspec.json.encode({**_headers(headers), EVERY: seconds, VERSION: version})


def _headers(headers: bytes | None) -> dict[str, Any]:
    try:
        decoded = {} if headers is None else msgspec.json.decode(headers)
    except msgspec.DecodeError:  # a producer of another kind wrote something else there
        return {}
    return decoded if isinstance(decoded, dict) else {}
