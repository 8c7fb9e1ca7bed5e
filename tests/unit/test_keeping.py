"""Which jobs of a schedule are kept."""

import pytest

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord, JobState, NewJob
from tidemill.model.schedules.firing import MISSED_LIMIT, firing_of
from tidemill.model.schedules.keeping import EXCESS_LIMIT, KEPT_LIMIT, droppable, excess_of, kept_after
from tidemill.model.schedules.schedule import KEEP_LIMIT, Cron, Every, Schedule, tick_id
from tidemill.model.time import SECOND

JOB = NewJob(id=bytes(16), task="t", queue="q")


def a_schedule(keep: int | None, *kept: int) -> Schedule:
    return Schedule(name="s", timing=Every(seconds=1), job=JOB, keep=keep, kept=kept)


def jobs_in(states: dict[int, JobState]) -> dict[JobId, JobRecord]:
    ids = {tick: tick_id("s", tick) for tick in states}
    return {
        ids[tick]: JobRecord(id=ids[tick], task="t", queue="q", priority=5, state=state)
        for tick, state in states.items()
    }


def test_the_oldest_beyond_keep_are_the_excess() -> None:
    assert list(excess_of(a_schedule(2, 1, 2, 3, 4))) == [1, 2]
    assert list(excess_of(a_schedule(0, 1, 2))) == [1, 2]
    assert excess_of(a_schedule(4, 1, 2, 3, 4)) == {}
    assert excess_of(a_schedule(5, 1, 2, 3, 4)) == {}
    assert excess_of(a_schedule(None, 1, 2)) == {}


def test_one_firing_reads_a_bounded_number() -> None:
    found = excess_of(a_schedule(10, *range(KEPT_LIMIT)))
    assert list(found) == list(range(EXCESS_LIMIT))
    assert list(found.values()) == [tick_id("s", tick) for tick in range(EXCESS_LIMIT)]


def test_only_completed_and_cancelled_jobs_are_dropped() -> None:
    states = dict(enumerate(JobState))
    schedule = a_schedule(1, *states, 98, 99)  # the job of 98 is gone, that of 99 is kept
    spent = (JobState.COMPLETED, JobState.CANCELLED)
    assert droppable(schedule, jobs_in(states | {99: JobState.COMPLETED})) == [
        tick_id("s", tick) for tick, state in states.items() if state in spent
    ]


def test_a_tick_leaves_the_row_when_nothing_is_left_to_drop() -> None:
    states = dict(enumerate(JobState))
    schedule = a_schedule(1, *states, 98, 99)
    stay = [tick for tick, state in states.items() if state is not JobState.DEAD]
    assert kept_after(schedule, [100, 101], jobs_in(states)) == (*stay, 99, 100, 101)
    assert kept_after(schedule, [100]) == (*states, 98, 99, 100), "nobody has looked at the jobs"


def test_without_keep_nothing_is_remembered() -> None:
    assert kept_after(a_schedule(None, 1, 2), [3], {}) == ()
    assert droppable(a_schedule(None, 1), jobs_in({1: JobState.COMPLETED})) == []


def test_the_row_is_bounded() -> None:
    """Where all are still running, say: the oldest are left to their queue."""
    running = jobs_in(dict.fromkeys(range(KEPT_LIMIT), JobState.RUNNING))
    kept = kept_after(a_schedule(0, *range(KEPT_LIMIT)), [7_000, 7_001], running)
    assert kept == (*range(2, KEPT_LIMIT), 7_000, 7_001)


@pytest.mark.parametrize("keep", [0, 5, KEEP_LIMIT])
def test_no_firing_makes_more_than_can_be_dropped(keep: int) -> None:
    schedule, there, last = a_schedule(keep), set[int](), 0
    for _ in range(20):
        jobs = jobs_in(dict.fromkeys(there, JobState.COMPLETED))
        made = list(range(last, last := last + MISSED_LIMIT))
        spent = set(droppable(schedule, jobs))
        schedule = a_schedule(keep, *kept_after(schedule, made, jobs))
        there = {tick for tick in there if tick_id("s", tick) not in spent} | set(made)
    assert sorted(there) == list(range(last - keep - MISSED_LIMIT, last))


def test_a_firing_names_the_ticks_of_its_jobs() -> None:
    cron = Schedule(
        name="s", timing=Cron(fields="* * * * * *"), job=JOB, missed="all", overlap="allow", next_at=0
    )
    assert firing_of(cron, 2 * SECOND).ticks == (0, SECOND, 2 * SECOND)
    line = Schedule(
        name="s", timing=cron.timing, job=JOB, missed="all", overlap="queue", waiting=1, next_at=0
    )
    assert firing_of(line, 2 * SECOND).ticks == (SECOND, 2 * SECOND), "of those that found room"
    interval = Schedule(name="s", timing=Every(seconds=1), job=JOB, next_at=5)
    assert firing_of(interval, 9).ticks == (5,)
    assert firing_of(interval, 9, unfinished=[4]).ticks == ()
