"""Who holds a unique key: written in the same step as the job's state."""

from collections.abc import Iterable

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.uniques import PERIOD, START, until_code
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import UniqueKey

SQL = load_statements("tidemill.engines.sqlite", "unique")


def hold(step: Step, job: NewJob, unique: UniqueKey, pk: int) -> None:
    """A new job holds its key, which is free or its own. Its row in `more` keeps it from the fast paths."""
    until = until_code(unique)
    step.db.execute(SQL.note_key, (pk, unique.key, until))
    if until == PERIOD:
        end = step.now + (unique.period or 0)
        step.db.execute(SQL.hold_for_period, (job.task, unique.key, job.id, end, step.now))
        return
    step.db.execute(SQL.hold, (job.task, unique.key, pk, until == START))
    if until == START:
        step.catalogue.freed_at_start = True


def free(step: Step, job: Facts) -> None:
    """A job ends. (A key of a period stays.)"""
    if job.unique_key is not None:
        step.db.execute(SQL.free, (job.task, job.unique_key, job.pk))


def free_at_start(step: Step, pks: Iterable[int]) -> None:
    """Jobs start."""
    if step.catalogue.freed_at_start:
        step.db.execute(SQL.free_at_start, (msgspec.json.encode(list(pks)).decode(),))


def take_again(step: Step, job: Facts) -> bool:
    """A job that does not hold its key becomes live, or waits again; False: another one holds it."""
    if job.unique_key is None or job.unique_until == PERIOD:
        return True
    at_start = job.unique_until == START
    taken = step.db.execute(SQL.hold, (job.task, job.unique_key, job.pk, at_start)).rowcount == 1
    if taken and at_start:
        step.catalogue.freed_at_start = True
    return taken


def forget(step: Step, job: Facts) -> None:
    """A job is deleted: nothing is known of the calls that replaced it."""
    if job.unique_key is not None:
        step.db.execute(SQL.forget_all_replacing, (job.pk,))
