"""Where jobs stand: which order a job is in, put and taken in the same step as it moves.

`moves` decides; this writes. Hot paths that know all of their jobs to be in one order (enqueue, claim,
plain completion) call the parts directly.
"""

from collections.abc import Iterable

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.facts import Facts
from tidemill.engines.sqlite.step import BLOCKED, DEAD, READY, RUNNING, SCHEDULED, Step
from tidemill.engines.sqlite.stretches import SQL as STRETCHES
from tidemill.engines.sqlite.stretches import Stretches, stretches_of

SQL = load_statements(__package__, "places")

READY_ORDER = Stretches("ready")
RUNS = Stretches("run")
ENDED_ORDER = Stretches("ended")

TOMBSTONE = 2
"""The form of a job of which only id, state and settled fence are left."""

LaneKey = tuple[int, int, int, str]
"""queue, priority, suspect, group"""
Place = tuple[LaneKey, int, int]
"""A ready job: lane, seq, pk"""


def put_ready(step: Step, jobs: Iterable[Place]) -> None:
    """Jobs stand in their lanes. Neighbours with consecutive seqs and pks become one row."""
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
    step.db.executemany(STRETCHES.add_ready, rows)


def take_ready(step: Step, lane: LaneKey, seqs: list[int]) -> None:
    """Jobs leave their lane."""
    for first, last in stretches_of(seqs):
        READY_ORDER.cut(step.db, lane, first, last)


def put_scheduled(step: Step, job: Facts, due_at: int) -> None:
    """It waits for its due time."""
    step.db.execute(SQL.add_due, (job.queue, due_at, job.seq, job.pk))


def put_expiring(step: Step, job: Facts) -> None:
    """It has not started, and must before long."""
    if job.expires_at is not None:
        step.db.execute(SQL.add_expiring, (job.expires_at, job.pk))


def put_ended(step: Step, job: Facts, state: int, ended_at: int, *, buried: bool) -> None:
    """It ended."""
    if buried:
        step.db.execute(SQL.add_grave, (ended_at, job.pk))
        return
    step.db.execute(STRETCHES.add_ended, (job.queue, state, ended_at, job.pk, job.pk))
    if state == DEAD:
        step.db.execute(SQL.add_dead, (job.queue, job.task, ended_at, job.pk))


def leave(step: Step, job: Facts) -> None:
    """Take a job out of where it stands now."""
    if job.state == RUNNING:
        RUNS.cut(step.db, (), job.pk, job.pk)
        return
    if job.state > RUNNING:
        _leave_ended(step, job)
        return
    if job.expires_at is not None:
        step.db.execute(SQL.forget_expiring, (job.expires_at, job.pk))
    if job.state == READY:
        READY_ORDER.cut(step.db, (job.queue, job.priority, job.suspect, job.lane), job.seq, job.seq)
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
