"""Jobs that stand aside: claims that know their task read them at their old place, others do not meet them.

A claim passes over a task that it names as unknown, or that is paused. What it meets of these it sets aside
when it is done: into the lane of the same group that is kept for that task (`lanes`).
"""

from collections.abc import Iterable, Sequence

from tidemill.engines.sqlite.claiming.ready_rows import (
    KEY,
    LANE,
    PK,
    PRIORITY,
    QUEUE,
    SEQ,
    SUSPECT,
    TASK,
    Row,
)
from tidemill.engines.sqlite.jobs import transitions
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.order import lanes, positions
from tidemill.engines.sqlite.order.positions import ASIDE, LaneKey
from tidemill.model.jobs.run import ClaimRequest


def passed_over(step: Step, request: ClaimRequest) -> frozenset[str]:
    """The tasks of which a claim takes no job."""
    paused = step.catalogue.paused_tasks
    return paused.union(request.unknown) if request.unknown else paused


def tasks_in(step: Step, queue: int, passed: frozenset[str]) -> list[str]:
    """The tasks of which jobs stand aside in a queue that this claim may take."""
    found = step.db.execute(lanes.SQL.aside_tasks, (queue,))
    return [task for (task,) in found if task not in passed]


def set_aside(step: Step, rows: Iterable[Row], unknown: Sequence[str]) -> None:
    """These jobs were met, and passed over."""
    seqs: dict[LaneKey, list[int]] = {}
    targets: dict[lanes.LaneRow, None] = {}
    moves: list[positions.Position] = []
    for row in rows:
        queue = step.catalogue.by_pk[row[QUEUE]]
        seqs.setdefault((queue.pk, row[PRIORITY], row[SUSPECT], row[LANE]), []).append(row[SEQ])
        target = lanes.lane_of(queue, row[PRIORITY], row[SUSPECT] + ASIDE, row[TASK], row[KEY])
        targets[target] = None
        moves.append((target[:4], row[SEQ], row[PK]))
        if row[TASK] in unknown:
            step.db.execute(transitions.SQL.unknown_here, (row[PK],))
    for lane, numbers in seqs.items():
        positions.take_ready(step, lane, numbers)
    lanes.announce(step, targets)
    step.db.executemany(lanes.SQL.move_job, [(lane[3], pk) for lane, _, pk in moves])
    positions.put_ready(step, moves)
    for pk in {lane[0] for lane in targets}:
        step.signal_ready(pk)
