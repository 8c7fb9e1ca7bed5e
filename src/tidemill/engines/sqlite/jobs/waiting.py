"""Who waits for whom: the bookkeeping. `dependents` moves the children."""

from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import BLOCKED, Step

SQL = load_statements("tidemill.engines.sqlite", "children")

GONE = -1
"""The state in which a deleted parent is remembered while its children are updated."""


def add(step: Step, parent: int, child: int) -> None:
    """The child waits for the parent."""
    step.db.execute(SQL.add_wait, (parent, child))
    step.db.execute(SQL.mark_parent, (parent,))


def parent_ended(step: Step, parent: int, state: int) -> None:
    """Its children are to be updated, by this step or, beyond the bound, by the next ones."""
    step.db.execute(SQL.add_ended_parent, (parent, state))
    step.parents_ended = step.catalogue.parents_ended = True


def stop_waiting(step: Step, child: Facts) -> None:
    """It ends before its parents do."""
    if child.state == BLOCKED:
        step.db.execute(SQL.forget_child, (child.pk,))
