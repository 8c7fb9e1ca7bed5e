"""Time passes: due jobs become ready, exactly once; overdue ones expire."""

from tidemill.engine.protocol import HANDLED_LIMIT, Promoted
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs import dependents, facts, transitions
from tidemill.engines.sqlite.jobs.step import READY, SCHEDULED, Step
from tidemill.engines.sqlite.order import lanes, positions
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.sqlite", "promote")


def due(step: Step, queue: KnownQueue, limit: int) -> int:
    """Move due jobs of one queue to ready, in the order of due time; returns how many moved."""
    jobs = step.db.execute(SQL.due, (queue.pk, step.now, limit)).fetchall()
    if not jobs:
        return 0
    seq = step.draw_seq(len(jobs))
    targets: dict[lanes.LaneRow, None] = {}
    updates: list[tuple[object, ...]] = []
    ready: list[positions.Position] = []
    for pk, _, _, priority, suspect, task, key, job_id in jobs:
        step.moved(job_id, READY, queue.pk, task)
        lane = lanes.lane_of(queue, priority, suspect, task, key)
        targets[lane] = None
        updates.append((lane[3], seq, step.now, pk))
        ready.append((lane[:4], seq, pk))
        seq += 1
    lanes.announce(step, targets)
    step.db.executemany(SQL.forget_due, [(queue.pk, due_at, old) for _, due_at, old, *_ in jobs])
    step.db.executemany(SQL.make_ready, updates)
    positions.put_ready(step, ready)
    step.move(queue.pk, SCHEDULED, READY, len(jobs))
    step.signal_ready(queue.pk)
    return len(jobs)


def next_due(step: Step, queue: int) -> Instant | None:
    """When the next scheduled job of a queue is due."""
    (due_at,) = step.db.execute(SQL.next_due, (queue,)).fetchone()
    return None if due_at is None else int(due_at)


def promote(step: Step, limit: int) -> Promoted:
    """All queues: due jobs, expired jobs, and children that were left over."""
    left = limit
    expired = facts.along(
        step,
        "expiring",
        "expiring.expires_at <= ? ORDER BY expiring.expires_at, expiring.pk LIMIT ?",
        (step.now, limit),
    )
    dead = 0
    for job in expired:
        if step.handled >= HANDLED_LIMIT:
            break
        transitions.expire(step, job)
        dead += 1
    updated = dependents.update(step, limit)
    step.parents_ended = False
    moved = dead + updated
    for queue in step.catalogue.by_pk.values():
        left -= due(step, queue, left)
    moved += limit - left
    if updated >= limit or left <= 0 or len(expired) >= limit or dead < len(expired):
        return Promoted(moved, 0)
    moments = [next_due(step, queue) for queue in step.catalogue.by_pk]
    times = [moment for moment in moments if moment is not None]
    return Promoted(moved, max(0, min(times) - step.now) if times else None)
