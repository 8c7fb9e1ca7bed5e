"""Retention, in bounded steps."""

from tidemill.engine.protocol import Pruned
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs import facts
from tidemill.engines.sqlite.jobs.commands import delete
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import CANCELLED, COMPLETED, Step
from tidemill.engines.sqlite.jobs.transitions import keep_of
from tidemill.engines.sqlite.unique import keys
from tidemill.model.queues.queue import TOMBSTONE_AGE
from tidemill.model.time import DAY, HOUR, span_of

SQL = load_statements("tidemill.engines.sqlite", "prune")

MINUTES_KEPT = 32 * DAY
RETIRED_KEPT = HOUR
AT_ONCE = 1_000
"""The most jobs, and the most keys of periods, that one transaction deletes: others wait for it."""


def prune(step: Step, limit: int) -> Pruned:
    """Delete up to `limit` jobs beyond their retention, and what has outlived its use."""
    limit = left = min(limit, AT_ONCE)
    for queue in step.catalogue.by_pk.values():
        for state in range(COMPLETED, CANCELLED + 1):
            if left > 0:
                left -= _delete(step, _beyond(step, queue, state, left))
    if left > 0:
        condition = "grave.ended_at <= ? ORDER BY grave.ended_at, grave.pk LIMIT ?"
        left -= _delete(step, facts.along(step, "grave", condition, (step.now - TOMBSTONE_AGE, left)))
    step.db.execute(SQL.forget_watches, (step.now,))
    step.db.execute(SQL.forget_starts, (step.now,))
    step.db.execute(SQL.forget_leases, (step.now,))
    step.db.execute(SQL.forget_claimants, (step.now - RETIRED_KEPT,))
    for forget in (SQL.forget_minutes, SQL.forget_stats, SQL.forget_samples):
        step.db.execute(forget, (step.now - MINUTES_KEPT,))
    periods = step.db.execute(keys.SQL.forget_periods, (step.now, AT_ONCE)).rowcount
    return Pruned(limit - left, left <= 0 or periods == AT_ONCE)


def _beyond(step: Step, queue: KnownQueue, state: int, limit: int) -> list[Facts]:
    """The oldest jobs of a state that are beyond the queue's retention by age or by count."""
    keep = keep_of(queue.options, state)
    in_state = f"ended.queue = ? AND ended.state = {state}"
    oldest = "ORDER BY ended.ended_at, ended.last, job_now.pk LIMIT ?"
    found: list[Facts] = []
    if keep.age is not None:
        condition = f"{in_state} AND ended.ended_at <= ? {oldest}"
        found = facts.along(step, "ended", condition, (queue.pk, step.now - span_of(keep.age), limit))
    if keep.count is not None and len(found) < limit:
        row = step.db.execute(SQL.tally, (queue.pk, state)).fetchone()
        excess = min((row[0] if row else 0) - keep.count, limit)
        if excess > len(found):
            found = facts.along(step, "ended", f"{in_state} {oldest}", (queue.pk, excess))
    return found


def _delete(step: Step, jobs: list[Facts]) -> int:
    for job in jobs:
        delete(step, job)
    return len(jobs)
