"""Lanes in SQLite: a row for each lane that may have ready jobs.

Enqueue announces a lane, a claim that finds one with a group empty deletes it. When a queue's options
change the shape of its lanes, its lanes are marked stale; claims then move the waiting jobs to where
they belong, a bounded number each, and take from that queue only when all have moved: order within
the new lanes is by `seq`, as ever.

Jobs that stand aside are in lanes of their own, one for each lane and task. The text of such a lane begins
with the task: so all lanes of a task lie together, and a claim that does not know it passes them over.
"""

from collections.abc import Iterable

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.order import positions
from tidemill.engines.sqlite.order.positions import ASIDE, aside_lane
from tidemill.model.queues.lane import group_of
from tidemill.model.queues.queue import QueueOptions

SQL = load_statements("tidemill.engines.sqlite", "lanes")

LaneRow = tuple[int, int, int, str, str, str, str | None]
"""queue, priority, kind, lane, limited task, limited key, task that stands aside"""


def lane_of(queue: KnownQueue, priority: int, kind: int, task: str, key: str | None) -> LaneRow:
    """Where a job of this task and key stands under the queue's present options."""
    aside = None if kind < ASIDE else task
    if not queue.shaped:
        return queue.pk, priority, kind, "" if aside is None else aside_lane(aside, ""), "", "", aside
    options = queue.options
    group = group_of(options, task, key)
    return (
        queue.pk,
        priority,
        kind,
        group if aside is None else aside_lane(aside, group),
        task if options.limit_of_task(task) else "",
        (key or "") if options.key_limited else "",
        aside,
    )


def announce(step: Step, lanes: Iterable[LaneRow]) -> None:
    """Make sure that claims read these lanes."""
    known = step.catalogue.lanes
    new = [lane for lane in lanes if lane[3] or lane[:3] not in known]
    if new:
        step.db.executemany(SQL.announce, new)
        known.update(lane[:3] for lane in new if not lane[3])


def reshape(step: Step, queue: int, before: QueueOptions, after: QueueOptions) -> None:
    """The queue's options changed: if its lanes are cut otherwise now, mark them."""
    if _shape(before) != _shape(after):
        step.db.execute(SQL.mark_stale, (queue,))


def settle_shape(step: Step, queue: KnownQueue, limit: int) -> bool:
    """Move up to `limit` jobs from stale lanes to where they belong; True when none is left."""
    db = step.db
    while (stale := db.execute(SQL.stale_lane, (queue.pk,)).fetchone()) is not None:
        priority, kind, lane, after = stale
        if limit <= 0:
            return False
        jobs = db.execute(SQL.stale_jobs, (queue.pk, priority, kind, lane, after, limit)).fetchall()
        limit -= max(1, len(jobs))
        moves: list[positions.Position] = []
        targets: dict[LaneRow, None] = {}
        for pk, seq, task, key in jobs:
            target = lane_of(queue, priority, kind, task, key)
            if target[3] != lane:
                moves.append((target[:4], seq, pk))
            targets[target] = None
        announce(step, targets)
        db.executemany(SQL.move_job, [(target[3], pk) for target, _, pk in moves])
        positions.take_ready(step, (queue.pk, priority, kind, lane), [seq for _, seq, _ in moves])
        positions.put_ready(step, moves)
        if jobs:
            db.execute(SQL.stale_from, (jobs[-1][1] + 1, queue.pk, priority, kind, lane))
        else:
            db.execute(SQL.delete_lane, (queue.pk, priority, kind, lane))
            step.catalogue.changed()
            stayed = db.execute(SQL.stale_jobs, (queue.pk, priority, kind, lane, 0, 1)).fetchone()
            if stayed is not None:
                announce(step, [lane_of(queue, priority, kind, *stayed[2:])])
    return True


def _shape(options: QueueOptions) -> tuple[bool, bool, list[str]]:
    return (
        options.keyed,
        options.key_limited,
        sorted(task for task, limit in options.per_task.items() if limit),
    )
