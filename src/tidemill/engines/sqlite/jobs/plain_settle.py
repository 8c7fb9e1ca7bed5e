"""The hot path of settle: a batch of plain completions of runs that this process claimed itself.

Plain means: completed, nothing follows, the queue keeps its jobs, and there is no more to the job than its
row (`more`). Their jobs are neither read nor written: each gets an outcome, and the
ranges among the runs and the ended are one statement for many. Anything else takes the long way in
`settle`, which reads each job.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.claiming.runs import ClaimedRuns
from tidemill.engines.sqlite.jobs.step import COMPLETED, RUNNING, Step
from tidemill.engines.sqlite.jobs.transitions import keep_of
from tidemill.engines.sqlite.order import gates
from tidemill.engines.sqlite.order.positions import RUNS
from tidemill.engines.sqlite.order.ranges import SQL as RANGES
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import PAYLOAD_LIMIT
from tidemill.model.jobs.run import Completed, Settlement
from tidemill.model.time import LONGEST, Span

SQL = load_statements("tidemill.engines.sqlite", "settle")

Done = tuple[int, int, Span, bytearray | None, JobId]
"""pk, fence, how long it ran, result, id"""


class _CompletedRun(NamedTuple):
    """A range of runs, as it is stored."""

    last: int
    first: int
    queue: int
    claimed_at: int
    member: str


_NO_RUN = _CompletedRun(0, 0, 0, 0, "")

Part = tuple[list[Done], _CompletedRun]
"""Completions that lie in one range of runs."""


def plain(settlements: Sequence[Settlement], runs: ClaimedRuns) -> list[Done] | None:
    """The completions, if all of them are plain as far as can be told from here; checked like others."""
    done: list[Done] = []
    take = runs.take
    for settlement in settlements:
        outcome, fence, ran = settlement.outcome, settlement.fence, settlement.ran
        if type(outcome) is not Completed or settlement.then is not None:
            return None
        result, pk = outcome.result, take(settlement.id)
        if pk is None or type(fence) is not int or type(ran) is not int or not 0 <= ran <= LONGEST:
            return None
        if type(result) is bytes and len(result) <= PAYLOAD_LIMIT:
            kept = bytearray(result)  # binds in 0.1 us, bytes in 0.7
        elif result is None:
            kept = None
        else:
            return None
        done.append((pk, fence, ran, kept, settlement.id))
    done.sort()
    return done


def complete(step: Step, done: list[Done]) -> bool:
    """Record them; False, and nothing was recorded, if there is anything else about any of them."""
    if not done:
        return True
    parts = _find_whole(step, done) or _find_each(step, done)
    if parts is None or not all(_keeps_jobs(step, run.queue) for _, run in parts):
        return False
    RUNS.take(step.db, [((), run.first, run.last, some[0][0], some[-1][0]) for some, run in parts])
    _record(step, parts)
    if step.catalogue.watched:
        for pk, _, _, _, job_id in done:
            step.ended(pk, job_id)
    return True


def _keeps_jobs(step: Step, queue: int) -> bool:
    return not keep_of(step.catalogue.by_pk[queue].options, COMPLETED).nothing


def _find_whole(step: Step, done: list[Done]) -> list[Part] | None:
    """All of them in one range of runs, as jobs that were claimed together are."""
    first, last, ahead = done[0][0], done[-1][0], done[0][1] - done[0][0]
    if last - first != len(done) - 1 or {item[1] - item[0] for item in done} != {ahead}:
        return None
    row = step.db.execute(SQL.runs_plainly, (first, last, ahead)).fetchone()
    if row is None or row[1] > first or row[0] < last or not row[5]:
        return None
    return [(done, _CompletedRun(*row[:5]))]


def _find_each(step: Step, done: list[Done]) -> list[Part] | None:
    """In ranges here and there: two statements, whatever their number."""
    pks = _json([item[0] for item in done])
    if step.db.execute(SQL.more_to, (pks,)).fetchone()[0]:
        return None
    found = {row[0]: row[1:] for row in step.db.execute(SQL.scattered_runs, (pks,))}
    parts: list[Part] = []
    run, next_pk = _NO_RUN, 0
    for item in done:
        pk, fence = item[:2]
        row = found.get(pk)
        if row is None or row[1] > pk or row[5] != fence - pk:
            return None
        if row[0] != run.last or pk != next_pk:
            run = _CompletedRun(*row[:5])
            parts.append(([], run))
        parts[-1][0].append(item)
        next_pk = pk + 1
    return parts


def _json(numbers: list[int]) -> str:
    return msgspec.json.encode(numbers).decode()


def _record(step: Step, parts: list[Part]) -> None:
    now = step.now
    outcomes: list[tuple[object, ...]] = []
    for done, run in parts:
        if len(done) > 1 and all(item[3] is None for item in done):
            pk, fence = done[0][:2]
            ran = _json([item[2] for item in done])
            whole = pk, now, fence - pk, run.claimed_at, run.member, ran
            step.db.execute(SQL.complete_range, whole)
        else:
            outcomes += [
                (pk, now, fence, run.claimed_at, now - ran, run.member, result)
                for pk, fence, ran, result, _ in done
            ]
    if outcomes:
        step.db.executemany(SQL.complete_plain, outcomes)
    ended = [(run.queue, COMPLETED, now, done[-1][0], done[0][0]) for done, run in parts]
    step.db.executemany(RANGES.add_ended, ended)
    for done, run in parts:
        queue, bounds = step.catalogue.by_pk[run.queue], (done[0][0], done[-1][0])
        step.move(run.queue, RUNNING, COMPLETED, len(done))
        if queue.limited:
            gates.reopen(step, set(step.db.execute(SQL.let_go, bounds).fetchall()))
        if not queue.options.keep_body:
            step.db.execute(SQL.shrink, bounds)
            step.db.execute(SQL.drop_bodies, bounds)
