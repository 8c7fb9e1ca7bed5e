"""Taking jobs: who may claim, and what taking writes. `choice` says which jobs."""

from collections.abc import Iterator
from typing import NamedTuple

from tidemill.engine.protocol import PROMOTE_LIMIT
from tidemill.engine.shared.codes import another_members_claimant, refusal
from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.turns import ClaimTurns
from tidemill.engines.sqlite.claiming import plain_claim
from tidemill.engines.sqlite.claiming.choice import Choice, wait_for
from tidemill.engines.sqlite.claiming.plain_claim import Plain, RunHolder, decode_retry
from tidemill.engines.sqlite.claiming.ready_rows import (
    EXPIRES,
    FIRST,
    ID,
    KEY,
    LANE,
    LAST,
    PK,
    PRIORITY,
    QUEUE,
    RETRY,
    SAME_CLAIM,
    SEQ,
    SUSPECT,
    TASK,
    Row,
)
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs import dependents
from tidemill.engines.sqlite.jobs.step import READY, RUNNING, Step
from tidemill.engines.sqlite.order import gates, positions
from tidemill.engines.sqlite.order.positions import READY_ORDER
from tidemill.engines.sqlite.order.ranges import SQL as RANGES
from tidemill.engines.sqlite.order.ranges import Part
from tidemill.engines.sqlite.unique import keys
from tidemill.model.ids import JobId
from tidemill.model.jobs.run import Claim, ClaimedJob, ClaimRequest
from tidemill.model.queues.starts import REPEATED, set_starts

SQL = load_statements("tidemill.engines.sqlite", "claim")


class AdmittedClaimant(NamedTuple):
    """Who claims, as the engine knows it. pk None: it has never taken anything."""

    pk: int | None
    member_name: str


def claim(step: Step, request: ClaimRequest, turns: ClaimTurns[int], taken: dict[JobId, int]) -> Claim:
    """Take up to `request.most` jobs, or the same ones again for a repeated number. `taken` gets the pks
    of those taken."""
    claimant, repeated = _admit(step, request)
    if repeated is not None:
        return repeated
    dependents.update(step, PROMOTE_LIMIT)
    plain = plain_claim.choose(step, request)
    if plain is not None:
        return _claim_plainly(step, request, claimant, plain, turns, taken)
    choice = Choice(step, request, turns)
    rows = choice.by_turns() if request.ids is None else choice.by_ids()
    jobs = _write(step, request, claimant, rows)
    taken.update([(row[ID], row[PK]) for row in rows])
    keys.free_at_start(step, taken.values())
    set_starts(jobs, choice.finish())
    return Claim(jobs, None if len(jobs) >= request.most else choice.wait(), step.now)


def _claim_plainly(
    step: Step,
    request: ClaimRequest,
    claimant: AdmittedClaimant,
    plain: Plain,
    turns: ClaimTurns[int],
    taken: dict[JobId, int],
) -> Claim:
    count = sum([len(rows) for _, rows in plain.lanes])
    jobs: list[ClaimedJob] = []
    if count:
        holder = _number(step, request, claimant)
        jobs = plain_claim.take(step, plain, holder, step.draw_fences(count))
        turns.queue_served(request.claimant, plain.queue.name)
        for _, rows in plain.lanes:
            taken.update([(row[2], row[0]) for row in rows])
        keys.free_at_start(step, taken.values())
    return Claim(jobs, None if count >= request.most else wait_for(step, [plain.queue]), step.now)


def _admit(step: Step, request: ClaimRequest) -> tuple[AdmittedClaimant, Claim | None]:
    row = step.db.execute(SQL.admit, (request.claimant, request.member)).fetchone()
    if row is None:
        raise refusal("MemberGone", request, 0)
    name, pk, number, retired_at, member = row
    if retired_at is not None:
        raise refusal("ClaimantRetired", request, number)
    if pk is not None and member != request.member:
        raise another_members_claimant()
    if pk is not None and request.number < number:
        raise refusal("ClaimOutOfOrder", request, number)
    claimant = AdmittedClaimant(pk, name)
    return claimant, _again(step, pk, number) if pk is not None and request.number == number else None


def _again(step: Step, claimant: int, number: int) -> Claim:
    found = step.db.execute(SAME_CLAIM, (claimant, number))
    jobs = [_job(step.catalogue.by_pk[row[QUEUE]], row, row[FIRST]) for row in found]
    rules = [(queue.name, queue.starts) for queue in step.catalogue.by_pk.values()]
    set_starts(jobs, {name: (starts, REPEATED) for name, starts in rules if starts is not None})
    return Claim(jobs, wait=0, now=step.now)


def _number(step: Step, request: ClaimRequest, claimant: AdmittedClaimant) -> RunHolder:
    """Remember the number of a claim that takes jobs."""
    pk, number = claimant.pk, request.number
    if pk is None:
        (pk,) = step.db.execute(SQL.add_claimant, (request.claimant, request.member, number)).fetchone()
    else:
        step.db.execute(SQL.number_claim, (number, pk))
    return RunHolder(pk, number, claimant.member_name)


def _write(
    step: Step, request: ClaimRequest, claimant: AdmittedClaimant, rows: list[Row]
) -> list[ClaimedJob]:
    if not rows:
        return []
    holder = _number(step, request, claimant)
    fence = step.draw_fences(len(rows))
    runs: list[tuple[object, ...]] = []
    parts: list[Part] = []
    for first, last in _ranges(rows):
        kind = positions.kind_of(first[SUSPECT], first[LANE])
        lane = first[QUEUE], first[PRIORITY], kind, first[LANE]
        if first[LAST] is None:  # found by its id: its range is not known
            READY_ORDER.cut(step.db, lane, first[SEQ], last[SEQ])
        else:
            parts.append((lane, first[FIRST], first[LAST], first[SEQ], last[SEQ]))
        size = last[PK] - first[PK] + 1
        bounds = last[PK], first[PK], fence - first[PK], first[QUEUE]
        runs.append((*bounds, holder.claimant, holder.number, step.now, holder.member))
        step.move(first[QUEUE], READY, RUNNING, size)
        fence += size
    READY_ORDER.take(step.db, parts)
    step.db.executemany(RANGES.add_run, runs)
    _start(step, rows)
    return _jobs(step, rows, fence - len(rows))


def _ranges(rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Neighbours in one range of a lane: the first and the last of each."""
    first = last = rows[0]
    for row in rows[1:]:
        if row[LAST] != last[LAST] or row[PK] != last[PK] + 1 or row[LAST] is None:
            yield first, last
            first = row
        last = row
    yield first, last


def _start(step: Step, rows: list[Row]) -> None:
    """What started cannot expire any more; behind a gate it is held."""
    queues = step.catalogue.by_pk
    expiring = [(row[EXPIRES], row[PK]) for row in rows if row[EXPIRES] is not None]
    if expiring:
        step.db.executemany(positions.SQL.forget_expiring, expiring)
    held = [(row[PK], row[QUEUE], row[TASK], row[KEY] or "") for row in rows if queues[row[QUEUE]].limited]
    if held:
        step.db.executemany(gates.SQL.hold, held)


def _jobs(step: Step, rows: list[Row], fence: int) -> list[ClaimedJob]:
    queues = step.catalogue.by_pk
    jobs = []
    for row in rows:
        jobs.append(_job(queues[row[QUEUE]], row, fence))
        fence += 1
    return jobs


def _job(queue: KnownQueue, row: Row, fence: int) -> ClaimedJob:
    """The columns from the id on are those of a claimed job; some are filled in here."""
    job = ClaimedJob(*row[ID:])
    job.fence = fence
    job.queue = queue.name
    job.suspect = row[SUSPECT] == 1
    job.limited = queue.limited or queue.shaped
    if job.retry is not None:
        job.retry = decode_retry(row[RETRY])
    return job
