"""What the end of a parent does to its children.

Ended parents queue up in a table; each step that ends one, each claim and each promote works off a
bounded number of children. So a fan-out of a hundred thousand, or a long chain that is cancelled,
never makes one step long.
"""

from collections.abc import Iterable

from tidemill.engines.sqlite.jobs import facts, transitions
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import CANCELLED, COMPLETED, DEAD, Step
from tidemill.engines.sqlite.jobs.waiting import GONE, SQL, add
from tidemill.model.ids import show_id
from tidemill.model.jobs.job import Failure


def wait_for(step: Step, child: int, parents: Iterable[Facts]) -> bool:
    """A new, blocked child waits for those of its parents that have not ended well. False: it does not stay
    blocked."""
    job = _facts(step, child)
    waits, lost = 0, None
    for parent in parents:
        done = parent.state == COMPLETED or (parent.state in (DEAD, CANCELLED) and job.parent_died == "run")
        if parent.state in (DEAD, CANCELLED) and job.parent_died == "cancel":
            lost = parent
        elif not done:
            add(step, parent.pk, child)
            waits += 1
    step.db.execute(SQL.set_waits, (waits, child))
    job = _facts(step, child)
    if lost is not None:
        _cancel(step, job, show_id(lost.id))
    elif waits == 0:
        _unblock(step, job)
    return lost is None and waits > 0


def update(step: Step, limit: int) -> int:
    """Update up to `limit` children whose parent ended; returns how many."""
    if not step.catalogue.parents_ended:
        return 0
    updated = 0
    while updated < limit and (entry := step.db.execute(SQL.next_ended_parent).fetchone()) is not None:
        pk, parent, state, last = entry
        waiting = step.db.execute(SQL.next_children, (parent, last, limit - updated)).fetchall()
        for (child,) in waiting:
            _update(step, _facts(step, child), parent, state)
        updated += len(waiting)
        if waiting:
            step.db.execute(SQL.updated_through, (waiting[-1][0], pk))
        else:
            step.db.execute(SQL.forget_ended_parent, (pk,))
    return updated


def unfinished(step: Step) -> bool:
    """Whether children are still to be updated."""
    return step.catalogue.parents_ended and step.db.execute(SQL.next_ended_parent).fetchone() is not None


def _update(step: Step, child: Facts, parent: int, state: int) -> None:
    if state == COMPLETED or (state != GONE and child.parent_died == "run"):
        step.db.execute(SQL.forget_wait, (parent, child.pk))
        step.db.execute(SQL.set_waits, (child.waits_for - 1, child.pk))
        if child.waits_for == 1:
            _unblock(step, child)
    elif state == GONE or child.parent_died == "cancel":
        row = facts.by_pk(step, parent)
        _cancel(step, child, "which was deleted" if row is None else show_id(row.id))


def _unblock(step: Step, child: Facts) -> None:
    if child.due_at is not None and child.due_at > step.now:
        transitions.to_scheduled(step, child, child.due_at)
    else:
        transitions.to_ready(step, child, keep_seq=False)


def _cancel(step: Step, child: Facts, parent: str) -> None:
    failure = Failure(kind="parent", message=f"a parent did not complete: {parent}")
    transitions.append_failure(step, child, failure, attempt=child.attempts)
    transitions.cancel(step, child)


def _facts(step: Step, pk: int) -> Facts:
    job = facts.by_pk(step, pk)
    if job is None:
        raise LookupError(f"job {pk} waits but does not exist")
    return job


def update_if_needed(step: Step, limit: int) -> None:
    """At the end of an operation that may have ended a parent."""
    if step.parents_ended:
        update(step, limit)
        step.parents_ended = False
