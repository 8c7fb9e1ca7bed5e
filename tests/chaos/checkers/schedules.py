"""One job for each tick of a schedule, none left out, and never two runs of an interval."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.app import EVERY_SECOND, INTERVAL, INTERVAL_S
from tests.chaos.checkers.case import Case
from tests.chaos.history import Operation
from tidemill.model.schedules.firing import MISSED_LIMIT
from tidemill.model.schedules.schedule import tick_id
from tidemill.model.time import SECOND, Instant, span_of


def one_job_per_tick(case: Case) -> list[str]:
    """Every second from the first that was fired to the last has its job, and nothing else has one: those
    that nobody could fire in time were made up for. No tick is fired twice, whoever tries, and what was fired
    is there."""
    found = []
    fires: dict[tuple[str, Instant], list[Operation]] = defaultdict(list)
    for fire in case.history.operations("fire"):
        if fire.jobs:
            fires[fire.text, fire.engine_at].append(fire)
    for (name, tick), tries in fires.items():
        done = [one for one in tries if one.phase == "ok" and one.answers[0] == "fired"]
        if len(done) > 1:
            found.append(f"{name}: the tick {tick} was fired {len(done)} times")
        found += [
            f"{name}: the job {job} of the tick {tick} is not there"
            for one in done
            for job in one.jobs
            if job not in case.reading.jobs
        ]
        found += [
            f"{name}: the tick {tick} was tried with the job {one.jobs[0]}, which is not its own"
            for one in tries
            if len(one.jobs) < MISSED_LIMIT and one.jobs[0] != tick_id(name, tick).hex()
        ]
    return found + _seconds(case)


def _seconds(case: Case) -> list[str]:
    """The jobs of the schedule whose every second is a tick."""
    ticks = {tick_id(EVERY_SECOND, tick).hex(): tick for tick in _ticks(case)}
    there = {job for job, one in case.reading.jobs.items() if one.schedule == EVERY_SECOND}
    passed = _passed_over(case, ticks)
    return [
        *(f"the job {job} of {EVERY_SECOND} is of no tick" for job in sorted(there - set(ticks))),
        *(
            f"the tick {tick} of {EVERY_SECOND} has no job"
            for job, tick in ticks.items()
            if job not in there and tick not in passed
        ),
    ]


def _ticks(case: Case) -> Iterator[Instant]:
    """From the first that anybody tried to fire to the last that the schedule knows."""
    tried = [fire.engine_at for fire in case.history.operations("fire") if fire.text == EVERY_SECOND]
    schedule = case.reading.schedules.get(EVERY_SECOND)
    if tried and schedule is not None and schedule.last_at is not None:
        yield from range(min(tried), schedule.last_at + 1, SECOND)


def _passed_over(case: Case, ticks: dict[str, Instant]) -> set[Instant]:
    """More than so many at once are not made up for: the oldest of them. (A firing whose jobs are of no tick
    has passed over none.)"""
    found: set[Instant] = set()
    for fire in case.history.operations("fire"):
        if fire.text == EVERY_SECOND and len(fire.jobs) >= MISSED_LIMIT and fire.phase != "failed":
            first = min((ticks[job] for job in fire.jobs if job in ticks), default=fire.engine_at)
            found.update(range(fire.engine_at, first, SECOND))
    return found


def intervals_never_overlap(case: Case) -> list[str]:
    """By the engine's clock, each run of an interval was asked for no sooner than one interval after the end
    of the one before."""
    runs = sorted(
        (one for one in case.reading.jobs.values() if one.schedule == INTERVAL),
        key=lambda one: one.created_at,
    )
    found = []
    for before, after in pairwise(runs):
        if before.ended_at is None:
            found.append(f"a run of {INTERVAL} began at {after.created_at}, before the last one had ended")
        elif after.created_at < before.ended_at + span_of(INTERVAL_S):
            early_s = (before.ended_at + span_of(INTERVAL_S) - after.created_at) / SECOND
            found.append(f"a run of {INTERVAL} began {early_s:.3f} s too early, at {after.created_at}")
    return found


def schedules_catch_up(case: Case) -> list[str]:
    """Once all is healed, every schedule fires again, and has made up for what was missed."""
    caught_up_s, bound_s = case.reading.caught_up_s, case.times.catch_up_s
    if caught_up_s is None or caught_up_s > bound_s:
        return [f"not every schedule had fired what was due after {bound_s} s"]
    return []
