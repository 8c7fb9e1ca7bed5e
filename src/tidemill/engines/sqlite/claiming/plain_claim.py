"""The hot path of claim: one wanted queue without groups and limits, which has one lane a priority.

No turns, no gates, no suspects: what is taken is the front of a lane. Only the columns that every job has are
read, 10 of 24: each column costs 0.1 us on its way through sqlite3. `odd` tells of the others; they are read
for the jobs that have any. Taking is two statements on the order of the lane and a range among the runs,
whatever the number of jobs. Anything else takes the long way in `claim`: also a suspect that waits, if this
claim may take it.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.claiming import aside
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs.step import READY, RUNNING, Step
from tidemill.engines.sqlite.order import lanes, positions
from tidemill.engines.sqlite.order.ranges import SQL as RANGES
from tidemill.engines.sqlite.order.ranges import ranges_of
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import ClaimedJob, ClaimRequest

SQL = load_statements("tidemill.engines.sqlite", "claim")

decode_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)

Row = tuple[int, int, bytes, str, int, int, bytes, int, int, object]
"""pk, seq, id, task, max_attempts, codec, body, created_at, ready_at, odd"""


class Plain(NamedTuple):
    """What a claim takes from a plain queue."""

    queue: KnownQueue
    lanes: list[tuple[int, list[Row]]]
    """By priority."""
    odd: dict[int, tuple[Any, ...]]
    """What else there is to some, by pk: attempts, crashes, expires_at, headers, key, timeout, retry,
    on_dead, schedule, snoozes."""


class RunHolder(NamedTuple):
    """Who takes: the pk of the claimant, the claim's number, the member's name."""

    claimant: int
    number: int
    member: str


def choose(step: Step, request: ClaimRequest) -> Plain | None:
    """What this claim takes, if it is of that kind."""
    if request.ids is not None or len(request.wants) != 1:
        return None
    (want,) = request.wants
    queue = step.catalogue.by_name.get(want.queue)
    if queue is None or queue.paused or queue.shaped or queue.limited:
        return None
    found = step.db.execute(lanes.SQL.check_plain_queue, (queue.pk, step.now))
    due, stale, suspects, priority, some_aside = found.fetchone()
    if due or stale or (suspects and request.suspects):
        return None
    passed = aside.passed_over(step, request)
    if some_aside and aside.tasks_in(step, queue.pk, passed):
        return None
    left = request.most if want.most is None else min(request.most, want.most)
    plain = Plain(queue, [], {})
    while priority is not None and left > 0:
        rows = step.db.execute(SQL.front, (queue.pk, priority, left)).fetchall()
        if passed and not passed.isdisjoint([row[3] for row in rows]):
            return None
        if rows:
            plain.lanes.append((priority, rows))
            left -= len(rows)
        if left:
            (priority,) = step.db.execute(lanes.SQL.next_priority, (queue.pk, priority)).fetchone()
    return plain if _read_odd(step, plain) else None


def _read_odd(step: Step, plain: Plain) -> bool:
    """Read the rest of those that have more than the usual columns; False if one of them has expired."""
    pks = [row[0] for _, rows in plain.lanes for row in rows if row[9] is not None]
    if pks:
        for pk, *rest in step.db.execute(SQL.odd, (msgspec.json.encode(pks).decode(),)):
            if rest[2] is not None and rest[2] <= step.now:
                return False
            plain.odd[pk] = tuple(rest)
    return True


def take(step: Step, plain: Plain, holder: RunHolder, fence: int) -> list[ClaimedJob]:
    """Take them, with fences from this one on."""
    jobs: list[ClaimedJob] = []
    runs: list[tuple[object, ...]] = []
    queue = plain.queue
    for priority, rows in plain.lanes:
        last = rows[-1][1]
        step.db.execute(SQL.take_whole, (queue.pk, priority, last))
        step.db.execute(SQL.take_front, (queue.pk, priority, last))
        begin = fence + len(jobs)
        for first_pk, last_pk in ranges_of([row[0] for row in rows]):
            bounds = last_pk, first_pk, begin - first_pk, queue.pk
            runs.append((*bounds, holder.claimant, holder.number, step.now, holder.member))
            begin += last_pk - first_pk + 1
        jobs += _jobs(queue, priority, rows, fence + len(jobs))
    step.db.executemany(RANGES.add_run, runs)
    step.move(queue.pk, READY, RUNNING, len(jobs))
    if plain.odd:
        _complete_odd(step, plain, jobs)
    return jobs


def _jobs(queue: KnownQueue, priority: int, rows: list[Row], first_fence: int) -> list[ClaimedJob]:
    name = queue.name
    return [
        ClaimedJob(
            job_id, fence, seq, task, name, priority, 1, max_attempts, codec, body,
            None, None, None, None, created_at, ready_at, 0, False, False, None, None,
        )
        for fence, (_, seq, job_id, task, max_attempts, codec, body, created_at, ready_at, _)
        in enumerate(rows, first_fence)
    ]  # fmt: skip


def _complete_odd(step: Step, plain: Plain, jobs: list[ClaimedJob]) -> None:
    """Fill in the rest of the odd ones; having started, they cannot expire any more."""
    expiring: list[tuple[int, int]] = []
    pks = [row[0] for _, rows in plain.lanes for row in rows]
    for pk, job in zip(pks, jobs, strict=True):
        if pk in plain.odd:
            (
                attempts, job.crashes, expires_at, job.headers, job.key, job.timeout, retry, job.on_dead,
                job.schedule, job.snoozes,
            ) = plain.odd[pk]  # fmt: skip
            job.attempt = attempts + 1
            job.retry = None if retry is None else decode_retry(retry)
            if expires_at is not None:
                expiring.append((expires_at, pk))
    if expiring:
        step.db.executemany(positions.SQL.forget_expiring, expiring)
