"""The hot path of settle: a batch of plain completions of runs that this process claimed itself.

Plain means: completed, nothing follows, the queue has no limits and keeps jobs whole, and there is no more
to the job than its row (`more`). Their jobs are neither read nor written: each gets an outcome, and the
stretches among the runs and the ended are one statement for many. Anything else takes the long way in
`settle`, which looks at each job.
"""

from collections.abc import Sequence
from typing import NamedTuple

from penstock.engine.statements import load_statements
from penstock.engines.sqlite.places import RUNS
from penstock.engines.sqlite.runs import Runs
from penstock.engines.sqlite.step import COMPLETED, RUNNING, Step
from penstock.engines.sqlite.stretches import SQL as STRETCHES
from penstock.model.ids import JobId
from penstock.model.job import PAYLOAD_LIMIT
from penstock.model.run import Completed, Settlement
from penstock.model.time import LONGEST, Span

SQL = load_statements(__package__, "settle")

Done = tuple[int, int, Span, bytearray | None, JobId]
"""pk, fence, how long it ran, result, id"""


class _Part(NamedTuple):
    """Completions that lie in one stretch of runs."""

    done: list[Done]
    row: tuple[int, int]
    queue: int
    claimed_at: int
    member: str


def plain(settlements: Sequence[Settlement], runs: Runs) -> list[Done] | None:
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
    parts: list[_Part] = []
    for stretch in _stretches(done):
        if not _find(step, stretch, parts):
            return False
    if len(parts) == 1:  # the stretch is still as it was found
        RUNS.take(step.db, (), parts[0].row, done[0][0], done[-1][0])
    else:
        for part in parts:
            RUNS.cut(step.db, (), part.done[0][0], part.done[-1][0])
    for part in parts:
        _record(step, part)
    if step.catalogue.watched:
        for pk, _, _, _, job_id in done:
            step.ended(pk, job_id)
    return True


def _stretches(done: list[Done]) -> list[list[Done]]:
    """Completions in stretches of consecutive pks and fences."""
    stretches: list[list[Done]] = []
    stretch: list[Done] = []
    next_pk = next_fence = 0
    for item in done:
        if item[0] != next_pk or item[1] != next_fence:
            stretches.append(stretch := [])
        stretch.append(item)
        next_pk, next_fence = item[0] + 1, item[1] + 1
    return stretches


def _find(step: Step, stretch: list[Done], parts: list[_Part]) -> bool:
    """Find the runs of a stretch and check its fence; False if they are not all plain and present."""
    at, last, ahead = stretch[0][0], stretch[-1][0], stretch[0][1] - stretch[0][0]
    while at <= last:
        row = step.db.execute(SQL.runs_plainly, (at, last, ahead)).fetchone()
        if row is None or row[1] > at or not row[5]:
            return False
        end, begin, queue_pk, claimed_at, member, _ = row
        queue = step.catalogue.by_pk[queue_pk]
        if queue.limited or not queue.options.keep_body or queue.options.keep_completed.nothing:
            return False
        done = stretch[at - last - 1 :][: end - at + 1]
        parts.append(_Part(done, (begin, end), queue_pk, claimed_at, member))
        at = end + 1
    return True


def _record(step: Step, part: _Part) -> None:
    done, _, queue, claimed_at, member = part
    now, first, last = step.now, done[0][0], done[-1][0]
    step.db.executemany(
        SQL.complete_plain,
        [(pk, now, fence, claimed_at, now - ran, member, result) for pk, fence, ran, result, _ in done],
    )
    step.db.execute(STRETCHES.add_ended, (queue, COMPLETED, now, last, first))
    step.move(queue, RUNNING, COMPLETED, len(done))
