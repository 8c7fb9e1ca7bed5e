"""Taking jobs: who may claim, and what taking writes. `choice` says which jobs."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from penstock.engine.protocol import BATCH_LIMIT, PROMOTE_LIMIT
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import ripple
from penstock.engines.sqlite.catalogue import Queue
from penstock.engines.sqlite.choice import Choice, Row
from penstock.engines.sqlite.runs import Run, Runs
from penstock.engines.sqlite.step import READY, RUNNING, Step, check_batch
from penstock.engines.sqlite.turns import Turns
from penstock.model.errors import BadInput, ClaimantRetired, ClaimOutOfOrder, MemberGone
from penstock.model.retry import Retry
from penstock.model.run import Claim, ClaimedJob, ClaimRequest

SQL = load_statements(__package__, "claim")

_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)
_SAME_CLAIM = (
    f"SELECT fence, {', '.join(Row._fields)} FROM job WHERE state = 3 AND claimant = ? AND claim_no = ?"
)


class Claimant(NamedTuple):
    """Who claims, as the engine knows it. pk None: it has never taken anything."""

    pk: int | None
    member_name: str


def check(request: ClaimRequest) -> None:
    """Refuse before anything is done."""
    check_batch(len(request.ids or ()), BATCH_LIMIT)
    check_batch(len(request.wants), BATCH_LIMIT)
    if len({want.queue for want in request.wants}) != len(request.wants):
        raise BadInput("a claim names each queue once")
    if request.suspects < 0 or any(want.most is not None and want.most < 0 for want in request.wants):
        raise BadInput("a claim's bounds are 0 or more")
    if not 0 <= request.most <= BATCH_LIMIT:
        raise BadInput(f"a claim takes between 0 and {BATCH_LIMIT:,} jobs, not {request.most}")
    if request.number < 1:
        raise BadInput(f"claims are numbered from 1, not {request.number}")


def claim(step: Step, request: ClaimRequest, turns: Turns, runs: Runs) -> Claim:
    """Take up to `request.most` jobs, or the same ones again for a repeated number."""
    claimant, repeated = _admit(step, request)
    if repeated is not None:
        return repeated
    ripple.tell(step, PROMOTE_LIMIT)
    choice = Choice(step, request, turns)
    rows = choice.by_turns() if request.ids is None else choice.by_ids()
    jobs = _write(step, request, claimant, rows, runs)
    choice.finish()
    return Claim(jobs, None if len(jobs) >= request.most else choice.wait())


def _admit(step: Step, request: ClaimRequest) -> tuple[Claimant, Claim | None]:
    row = step.db.execute(SQL.admit, (request.claimant, request.member)).fetchone()
    if row is None:
        raise MemberGone("this member is not registered, or was dropped after its lease: beat first")
    name, pk, number, retired_at, member = row
    if retired_at is not None:
        raise ClaimantRetired("this claimant was declared dead; start a new one")
    if pk is not None and member != request.member:
        raise BadInput(
            "this claimant has claimed under another member: every start of a child is a new claimant"
        )
    if pk is not None and request.number < number:
        raise ClaimOutOfOrder(f"claim {request.number} comes after claim {number} of the same claimant")
    claimant = Claimant(pk, name)
    return claimant, _again(step, pk, number) if pk is not None and request.number == number else None


def _again(step: Step, claimant: int, number: int) -> Claim:
    found = step.db.execute(_SAME_CLAIM, (claimant, number)).fetchall()
    return Claim(
        [_job(step.catalogue.by_pk[row[5]], Row._make(row[1:]), row[0]) for row in sorted(found)], wait=0
    )


def _write(
    step: Step, request: ClaimRequest, claimant: Claimant, rows: list[Row], runs: Runs
) -> list[ClaimedJob]:
    if not rows:
        return []
    pk, number, name = claimant.pk, request.number, claimant.member_name
    if pk is None:
        (pk,) = step.db.execute(SQL.add_claimant, (request.claimant, request.member, number)).fetchone()
    else:
        step.db.execute(SQL.number_claim, (number, pk))
    now, queues, fence = step.now, step.catalogue.by_pk, step.draw_fences(len(rows))
    takes = [
        (start - first, pk, number, name, now, first, last) for first, last, start in _stretches(rows, fence)
    ]
    step.db.executemany(SQL.take, takes)
    gated = [(row.pk,) for row in rows if queues[row.queue].limited]
    if gated:
        step.db.executemany(SQL.gate, gated)
    jobs = []
    for row in rows:
        jobs.append(_job(queues[row.queue], row, fence))
        runs.add(fence, Run(row.pk, row.id, row.queue))
        fence += 1
    for queue_pk, count in Counter([row.queue for row in rows]).items():
        step.move(queue_pk, READY, RUNNING, count)
    return jobs


def _stretches(rows: list[Row], fence: int) -> Iterator[tuple[int, int, int]]:
    """Stretches of rows with consecutive pks: first pk, last pk, fence of the first.

    Jobs that were enqueued together are usually claimed together; one statement for a stretch costs
    3.0 us a job, one for each job 4.7."""
    first = last = rows[0].pk
    for row in rows[1:]:
        if row.pk != last + 1:
            yield first, last, fence
            fence += last - first + 1
            first = row.pk
        last = row.pk
    yield first, last, fence


def _job(queue: Queue, row: Row, fence: int) -> ClaimedJob:
    return ClaimedJob(
        row.id, fence, row.seq, row.task, queue.name, row.priority, row.attempts + 1, row.max_attempts,
        row.codec, row.body, row.headers, row.key or None, row.timeout,
        None if row.retry is None else _retry(row.retry), row.created_at, row.ready_at, row.crashes,
        row.suspect == 1, queue.limited or queue.shaped, row.on_dead, row.schedule,
    )  # fmt: skip
