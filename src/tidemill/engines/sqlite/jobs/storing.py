"""The rows of new jobs without parents."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs import plain_enqueue
from tidemill.engines.sqlite.jobs.step import READY, SCHEDULED, Step
from tidemill.engines.sqlite.order import lanes, positions
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.sqlite", "enqueue")

_encode = msgspec.json.Encoder().encode


def encode_retry(retry: Retry | None) -> bytes | None:
    """As the job keeps it."""
    return None if retry is None else _encode(retry)


def store_all(step: Step, jobs: Sequence[NewJob]) -> bool:
    """Store a batch of which no id is known yet, which is nearly every batch: nothing is read before.

    False, and nothing was stored, if some id was known."""
    queue = step.catalogue.named(jobs[0].queue, step.now)
    if not queue.shaped and plain_enqueue.are_alike(jobs):
        return plain_enqueue.store(step, queue, jobs)
    now, named = step.now, step.catalogue.named
    seq = step.next_seq()
    plain: list[tuple[object, ...]] = []
    rest: list[tuple[object, ...]] = []
    ready: list[positions.Position] = []
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
        if state == READY and plain_enqueue.is_plain(job):
            plain.append((*plain_enqueue.row_of(seq, job, queue.pk, now), lane[3]))
        else:
            rest.append(row_of(job, queue, lane[3], seq, state, due_at, now))
        counts[queue.pk, state] = counts.get((queue.pk, state), 0) + 1
        seq += 1
    if not step.all_or_none((SQL.insert_plain, plain), (SQL.insert_job, rest)):
        return False
    positions.put_ready(step, ready)
    if due:
        step.db.executemany(positions.SQL.add_due, due)
    if expiring:
        step.db.executemany(positions.SQL.add_expiring, expiring)
    lanes.announce(step, targets)
    for (queue_pk, code), count in counts.items():
        step.move(queue_pk, None, code, count)
        step.signal_ready(queue_pk)
    return True


def row_of(
    job: NewJob, queue: KnownQueue, lane: str, seq: int, state: int, due_at: Instant, now: Instant
) -> tuple[object, ...]:
    """As `insert_job` takes it."""
    return (
        seq, seq, bytearray(job.id), queue.pk, job.priority, lane, state, job.task, job.key or "",
        job.attempts, now,
        due_at if due_at > now else None,
        now if state == READY else None,
        None if job.expires is None else now + job.expires,
        job.timeout, encode_retry(job.retry), job.on_dead, job.schedule,
        job.codec, job.headers, bytearray(job.body),
    )  # fmt: skip
