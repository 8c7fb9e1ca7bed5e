"""Storing new jobs."""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from penstock.engine.protocol import BATCH_LIMIT, PROMOTE_LIMIT
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import facts, lanes, places, plain_jobs, ripple
from penstock.engines.sqlite.catalogue import Queue
from penstock.engines.sqlite.step import BLOCKED, READY, SCHEDULED, Step
from penstock.model.errors import UnknownParent
from penstock.model.ids import JobId, show_id
from penstock.model.job import NewJob
from penstock.model.retry import Retry
from penstock.model.time import Instant

SQL = load_statements(__package__, "enqueue")

_encode = msgspec.json.Encoder().encode


def enqueue_calls(step: Step, calls: list[Sequence[NewJob]]) -> list[list[bool]]:
    """Store the jobs of several calls, in their order, with as few statements as those of one."""
    answers: list[list[bool]] = []
    for together in _within_bound(calls):
        created = iter(enqueue(step, [job for jobs in together for job in jobs]))
        answers += [list(islice(created, len(jobs))) for jobs in together]
    ripple.tell_if_needed(step, PROMOTE_LIMIT)
    return answers


def _within_bound(calls: list[Sequence[NewJob]]) -> Iterator[list[Sequence[NewJob]]]:
    """Calls in groups of at most `BATCH_LIMIT` jobs."""
    together: list[Sequence[NewJob]] = []
    size = 0
    for jobs in calls:
        if together and size + len(jobs) > BATCH_LIMIT:
            yield together
            together, size = [], 0
        together.append(jobs)
        size += len(jobs)
    yield together


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
    queue = step.catalogue.named(jobs[0].queue, step.now)
    if not queue.shaped and plain_jobs.are_alike(jobs):
        return plain_jobs.store(step, queue, jobs)
    now, named = step.now, step.catalogue.named
    seq = step.next_seq()
    plain: list[tuple[object, ...]] = []
    rest: list[tuple[object, ...]] = []
    ready: list[places.Place] = []
    due: list[tuple[int, int, int, int]] = []
    expiring: list[tuple[int, int]] = []
    targets: dict[lanes.LaneRow, None] = {}
    counts: dict[tuple[int, int], int] = {}
    for job in jobs:
        queue = named(job.queue, now)
        due_at = now + job.delay if job.at is None else job.at
        lane = lanes.lane_of(queue, job.priority, 0, job.task, job.key)
        state = READY if due_at <= now else SCHEDULED
        if state == READY:
            targets[lane] = None
            ready.append((lane[:4], seq, seq))
        else:
            due.append((queue.pk, due_at, seq, seq))
        if job.expires is not None:
            expiring.append((now + job.expires, seq))
        if state == READY and plain_jobs.is_plain(job):
            plain.append((*plain_jobs.row_of(seq, job, queue.pk, now), lane[3]))
        else:
            rest.append(_row(job, queue, lane[3], seq, state, due_at, now))
        counts[queue.pk, state] = counts.get((queue.pk, state), 0) + 1
        seq += 1
    if not step.all_or_none((SQL.insert_plain, plain), (SQL.insert_job, rest)):
        return False
    places.put_ready(step, ready)
    if due:
        step.db.executemany(places.SQL.add_due, due)
    if expiring:
        step.db.executemany(places.SQL.add_expiring, expiring)
    lanes.announce(step, targets)
    for (queue_pk, code), count in counts.items():
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
    seq = step.next_seq()
    step.db.execute(SQL.insert_job, _row(job, queue, "", seq, BLOCKED, due_at, now))
    step.db.execute(SQL.insert_waiting, (seq, job.parent_died))
    step.db.execute(places.SQL.add_blocked, (queue.pk, seq))
    if job.expires is not None:
        step.db.execute(places.SQL.add_expiring, (now + job.expires, seq))
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
        seq, seq, bytearray(job.id), queue.pk, job.priority, lane, state, job.task, job.key or "",
        job.attempts, now,
        due_at if due_at > now else None,
        now if state == READY else None,
        None if job.expires is None else now + job.expires,
        job.timeout, encode_retry(job.retry), job.on_dead, job.schedule,
        job.codec, job.headers, bytearray(job.body),
    )  # fmt: skip
