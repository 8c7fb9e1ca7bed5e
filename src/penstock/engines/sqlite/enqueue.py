"""Storing new jobs."""

from collections.abc import Sequence

import msgspec

from penstock.engine.protocol import BATCH_LIMIT
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import facts, lanes, ripple
from penstock.engines.sqlite.catalogue import Queue
from penstock.engines.sqlite.step import BLOCKED, READY, SCHEDULED, Step, check_batch
from penstock.model.errors import UnknownParent
from penstock.model.ids import JobId, show_id
from penstock.model.job import NewJob, check_new_job
from penstock.model.retry import Retry
from penstock.model.time import Instant

SQL = load_statements(__package__, "enqueue")

_encode = msgspec.json.Encoder().encode


def check(jobs: Sequence[NewJob]) -> None:
    """Refuse before anything is stored."""
    check_batch(len(jobs), BATCH_LIMIT)
    for job in jobs:
        check_new_job(job)


def enqueue(step: Step, jobs: Sequence[NewJob]) -> list[bool]:
    """Store jobs that have been checked; True where created."""
    if not jobs:
        return []
    if any(job.after for job in jobs) or not _store_all(step, jobs):
        return _store_each(step, jobs)
    return [True] * len(jobs)


def encode_retry(retry: Retry | None) -> bytes | None:
    """As the job keeps it."""
    return None if retry is None else _encode(retry)


def _store_all(step: Step, jobs: Sequence[NewJob]) -> bool:
    """Store a batch of which no id is known yet, which is nearly every batch: no look beforehand.

    False, and nothing was stored, if some id was known."""
    db, now = step.db, step.now
    seq = step.draw_seq(len(jobs))
    rows: list[tuple[object, ...]] = []
    targets: dict[lanes.LaneRow, None] = {}
    queues: dict[tuple[int, int], int] = {}
    for job in jobs:
        queue = step.catalogue.named(job.queue, now)
        due_at = job.at if job.at is not None else now + job.delay
        lane = lanes.lane_of(queue, job.priority, 0, job.task, job.key)
        state = READY if due_at <= now else SCHEDULED
        if state == READY:
            targets[lane] = None
        queues[queue.pk, state] = queues.get((queue.pk, state), 0) + 1
        rows.append(_row(job, queue, lane[3], seq, state, due_at, now))
        seq += 1
    db.execute("SAVEPOINT batch")
    stored = db.executemany(SQL.insert_job, rows).rowcount
    if stored != len(jobs):
        db.execute("ROLLBACK TO batch")
        db.execute("RELEASE batch")
        return False
    db.execute("RELEASE batch")
    lanes.announce(step, targets)
    for (queue_pk, code), count in queues.items():
        step.move(queue_pk, None, code, count)
        step.signal_ready(queue_pk)
    return True


def _store_each(step: Step, jobs: Sequence[NewJob]) -> list[bool]:
    """Store one by one: some ids may be known, some jobs may wait for others."""
    answers = []
    for job in jobs:
        known = facts.by_ids(step, (job.id,))
        if not known:
            _store_one(step, job)
        answers.append(not known)
    return answers


def _store_one(step: Step, job: NewJob) -> None:
    if not job.after:
        _store_all(step, (job,))
        return
    now = step.now
    parents = facts.by_ids(step, dict.fromkeys(job.after))
    for parent in job.after:
        if parent not in parents:
            raise UnknownParent(_no_parent(job, parent))
    queue = step.catalogue.named(job.queue, now)
    due_at = job.at if job.at is not None else now + job.delay
    seq = step.draw_seq(1)
    step.db.execute(SQL.insert_job, _row(job, queue, "", seq, BLOCKED, due_at, now))
    step.move(queue.pk, None, BLOCKED)
    ripple.wait_for(step, seq, parents.values())


def _no_parent(job: NewJob, parent: JobId) -> str:
    return (
        f"{job.task} waits for {show_id(parent)}, which the engine does not have: enqueue it first, "
        "or earlier in the same call"
    )


def _row(
    job: NewJob, queue: Queue, lane: str, seq: int, state: int, due_at: Instant, now: Instant
) -> tuple[object, ...]:
    return (
        seq, job.id, queue.pk, job.priority, lane, seq, state, job.task, job.key or "", job.attempts,
        job.parent_died if job.after else None, now,
        due_at if due_at > now else None,
        now if state == READY else None,
        None if job.expires is None else now + job.expires,
        job.timeout, encode_retry(job.retry), job.on_dead, job.schedule,
        job.codec, job.headers, job.body,
    )  # fmt: skip
