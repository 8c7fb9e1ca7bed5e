"""How single jobs move, other than by the hot paths of enqueue, claim and completion.

Each function takes the facts of a job as they are now, makes one step of the lifecycle, and sees to
everything that hangs on it: where it stands, counts, permits, children, waiters.
"""

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.uniques import START
from tidemill.engines.sqlite.jobs import on_dead, waiting
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import (
    CANCELLED,
    COMPLETED,
    DEAD,
    READY,
    RUNNING,
    SCHEDULED,
    Step,
)
from tidemill.engines.sqlite.order import gates, lanes, positions
from tidemill.engines.sqlite.unique import keys
from tidemill.model.jobs.fingerprint import as_recorded
from tidemill.model.jobs.job import FIRST_KEPT, LAST_KEPT, Failure
from tidemill.model.jobs.run import Failed
from tidemill.model.queues.queue import KEEP_ENDED, Keep, QueueOptions
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.sqlite", "moves")

_encode = msgspec.json.Encoder().encode


def to_ready(step: Step, job: Facts, *, keep_seq: bool, reason: str | None = None) -> None:
    """It stands in its lane again: at its old position, or at the end. `reason`: why its run was released."""
    queue = step.catalogue.by_pk[job.queue]
    kind = job.suspect + positions.ASIDE if reason == "unknown task" else job.suspect
    lane = lanes.lane_of(queue, job.priority, kind, job.task, job.key)
    seq = job.seq if keep_seq else step.draw_seq(1)
    _leave(step, job)
    if job.state >= RUNNING:
        _remember_run(step, job._replace(started_at=None), reason)
    if job.state == RUNNING and job.unique_until == START:
        keys.take_again(step, job)
    lanes.announce(step, (lane,))
    step.db.execute(SQL.to_ready, (lane[3], seq, job.suspect, step.now, job.pk))
    positions.put_ready(step, [(lane[:4], seq, job.pk)])
    positions.put_expiring(step, job)
    step.move(job.queue, job.state, READY)
    step.moved(job.id, READY, job.queue, job.task)
    step.signal_ready(job.queue)


def to_scheduled(step: Step, job: Facts, due_at: Instant, *, reason: str | None = None) -> None:
    """It waits for a due time."""
    _leave(step, job)
    if job.state == RUNNING:
        _remember_run(step, job, reason)
        if job.unique_until == START:
            keys.take_again(step, job)
    step.db.execute(SQL.to_scheduled, (due_at, job.pk))
    positions.put_scheduled(step, job, due_at)
    positions.put_expiring(step, job)
    step.move(job.queue, job.state, SCHEDULED)
    step.moved(job.id, SCHEDULED, job.queue, job.task)
    step.signal_ready(job.queue)  # so that timers are set


def to_final(step: Step, job: Facts, state: int, result: bytes | None = None) -> None:
    """It ended. Signal waiters and update children; leave only a tombstone where nothing is kept."""
    step.moved(job.id, state, job.queue, job.task)
    if state == DEAD:
        on_dead.leave_handler(step, job)
    keys.free(step, job)
    options = step.catalogue.by_pk[job.queue].options
    buried = keep_of(options, state).nothing
    settled = job.state == RUNNING and job.settled_fence == job.fence
    _leave(step, job)
    if job.state == RUNNING and not settled:
        _remember_run(step, job)
    fence = job.fence if settled else None
    outcome = job.pk, state, step.now, fence, job.claimed_at, job.started_at, job.member, result
    step.db.execute(SQL.add_outcome, outcome)
    if job.waits_for:
        step.db.execute(SQL.wait_no_more, (job.pk,))
    positions.put_ended(step, job, state, step.now, buried=buried)
    step.move(job.queue, job.state, state)
    step.ended(job.pk, job.id)
    if job.has_children:
        waiting.parent_ended(step, job.pk, state)
    if buried:
        _bury(step, job.pk)
        step.move(job.queue, state, None)
    elif state == COMPLETED and not options.keep_body:
        step.db.execute(SQL.shrink, (job.pk,))
        step.db.execute(SQL.drop_payload, (job.pk, 1))


def _leave(step: Step, job: Facts) -> None:
    """It leaves where it stood; the permits of a run are free."""
    positions.leave(step, job)
    if job.state == RUNNING and step.catalogue.by_pk[job.queue].limited:
        step.db.execute(gates.SQL.let_go, (job.pk,))
        gates.reopen(step, {(job.queue, job.task, job.key)})


def _remember_run(step: Step, job: Facts, reason: str | None = None) -> None:
    run = job.pk, job.fence, job.settled_fence, job.claimed_at, job.member, job.started_at, reason
    step.db.execute(SQL.remember_run, run)
    if reason == "snooze":
        step.db.execute(SQL.count_snooze, (job.pk,))


def keep_of(options: QueueOptions, state: int) -> Keep:
    """The retention of a final state."""
    return options.keeps(KEEP_ENDED)[state - COMPLETED]


def _bury(step: Step, pk: int) -> None:
    """Leave a tombstone: id, state and settled fence stay for an hour."""
    step.db.execute(SQL.bury, (pk,))
    step.db.execute(SQL.drop_payload, (pk, 0))
    step.db.execute(SQL.forget_history, (pk,))
    forget_parts(step, pk)


def forget_parts(step: Step, pk: int) -> None:
    """Delete what is kept beside a job's row."""
    for statement in (SQL.forget_failures, SQL.forget_log, SQL.forget_checkpoints):
        step.db.execute(statement, (pk,))


def append_failure(step: Step, job: Facts, failure: Failure, *, attempt: int) -> None:
    """Add to a job's history, and drop what falls out between its first and its last failures."""
    number = job.failures + 1
    record = msgspec.structs.replace(
        as_recorded(failure),
        attempt=attempt,
        number=number,
        member=job.member or "",
        claimed_at=job.claimed_at,
        started_at=job.started_at,
        ended_at=step.now,
    )
    step.db.execute(SQL.add_failure, (job.pk, number, _encode(record)))
    step.db.execute(SQL.count_failure, (job.pk,))
    step.failed(job.id, record)
    if number > FIRST_KEPT + LAST_KEPT:
        step.db.execute(SQL.drop_failure, (job.pk, number - LAST_KEPT))


def record_failure(step: Step, job: Facts, outcome: Failed) -> None:
    """Add a failed attempt to its job's history."""
    retry_in = None if job.cancel_requested else outcome.retry_in
    failure = msgspec.structs.replace(outcome.failure, retry_in=retry_in)
    append_failure(step, job, failure, attempt=job.attempts + 1)


def expire(step: Step, job: Facts) -> None:
    """It was not started in time."""
    failure = Failure(kind="expired", message="not started before it expired")
    append_failure(step, job, failure, attempt=job.attempts)
    waiting.stop_waiting(step, job)
    to_final(step, job, DEAD)


def cancel(step: Step, job: Facts) -> None:
    """It had not started, and never will."""
    waiting.stop_waiting(step, job)
    to_final(step, job, CANCELLED)
