"""Positions: which order a job is in. Written in the same step as its state.

`moves` decides; this module writes. The hot paths (enqueue, claim, plain completion) know that all their jobs
are in one order, and call the parts directly.
"""

from collections.abc import Iterable

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import BLOCKED, DEAD, READY, RUNNING, SCHEDULED, Step
from tidemill.engines.sqlite.order.ranges import SQL as RANGES
from tidemill.engines.sqlite.order.ranges import Ranges, ranges_of

SQL = load_statements("tidemill.engines.sqlite", "positions")

READY_ORDER = Ranges("ready")
RUNS = Ranges("run")
ENDED_ORDER = Ranges("ended")

TOMBSTONE = 2
"""The form of a job of which only id, state and settled fence are left."""

ASIDE = 2
"""The kind of a lane is 0 or 1, whether its jobs are suspects; this is added if they stand aside."""
_AFTER_TASK = "\x1e"
"""No task and no key contains it."""

LaneKey = tuple[int, int, int, str]
"""queue, priority, kind, lane"""
Position = tuple[LaneKey, int, int]
"""A ready job: lane, seq, pk"""


def aside_lane(task: str, group: str) -> str:
    """The text of the lane in which jobs of this task and group stand aside."""
    return f"{task}{_AFTER_TASK}{group}"


def group_in(lane: str) -> str:
    """The group of a lane, aside or not."""
    return lane.rpartition(_AFTER_TASK)[2]


def is_aside(lane: str) -> bool:
    """Whether jobs stand aside in it."""
    return _AFTER_TASK in lane


def kind_of(suspect: int, lane: str) -> int:
    """The kind of the lane in which a ready job stands."""
    return suspect + ASIDE if is_aside(lane) else suspect


def put_ready(step: Step, jobs: Iterable[Position]) -> None:
    """Put jobs into their lanes. Neighbours with consecutive seqs and pks become one row."""
    rows: list[tuple[object, ...]] = []
    lane, first, last, ahead = None, 0, 0, 0
    for target, seq, pk in jobs:
        if target == lane and seq == last + 1 and seq - pk == ahead:
            last = seq
            continue
        if lane is not None:
            rows.append((*lane, last, first, ahead))
        lane, first, last, ahead = target, seq, seq, seq - pk
    if lane is not None:
        rows.append((*lane, last, first, ahead))
    step.db.executemany(RANGES.add_ready, rows)


def take_ready(step: Step, lane: LaneKey, seqs: list[int]) -> None:
    """Take jobs out of their lane."""
    for first, last in ranges_of(seqs):
        READY_ORDER.cut(step.db, lane, first, last)


def put_scheduled(step: Step, job: Facts, due_at: int) -> None:
    """Put a job among those that wait for their due time."""
    step.db.execute(SQL.add_due, (job.queue, due_at, job.seq, job.pk))


def put_expiring(step: Step, job: Facts) -> None:
    """Put a job among those that expire, if it does."""
    if job.expires_at is not None:
        step.db.execute(SQL.add_expiring, (job.expires_at, job.pk))


def put_ended(step: Step, job: Facts, state: int, ended_at: int, *, buried: bool) -> None:
    """Put a job among those that ended."""
    if buried:
        step.db.execute(SQL.add_grave, (ended_at, job.pk))
        return
    step.db.execute(RANGES.add_ended, (job.queue, state, ended_at, job.pk, job.pk))
    if state == DEAD:
        step.db.execute(SQL.add_dead, (job.queue, job.task, ended_at, job.pk))


def leave(step: Step, job: Facts) -> None:
    """Take a job out of the order that it is in."""
    if job.state == RUNNING:
        RUNS.cut(step.db, (), job.pk, job.pk)
        return
    if job.state > RUNNING:
        _leave_ended(step, job)
        return
    if job.expires_at is not None:
        step.db.execute(SQL.forget_expiring, (job.expires_at, job.pk))
    if job.state == READY:
        lane = job.queue, job.priority, kind_of(job.suspect, job.lane), job.lane
        READY_ORDER.cut(step.db, lane, job.seq, job.seq)
    elif job.state == SCHEDULED:
        step.db.execute(SQL.forget_due, (job.queue, job.due_at, job.seq))
    elif job.state == BLOCKED:
        step.db.execute(SQL.forget_blocked, (job.queue, job.pk))


def _leave_ended(step: Step, job: Facts) -> None:
    step.db.execute(SQL.forget_outcome, (job.pk,))
    if job.form == TOMBSTONE:
        step.db.execute(SQL.forget_grave, (job.ended_at, job.pk))
        return
    ENDED_ORDER.cut(step.db, (job.queue, job.state, job.ended_at), job.pk, job.pk)
    if job.state == DEAD:
        step.db.execute(SQL.forget_dead, (job.queue, job.task, job.ended_at, job.pk))
