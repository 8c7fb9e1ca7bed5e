"""Who holds a unique key: written in the same step as the job's state."""

from collections.abc import Iterable, Sequence

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.uniques import PERIOD, START, until_code
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import UniqueKey

SQL = load_statements("tidemill.engines.sqlite", "unique")


def hold_all(step: Step, jobs: Sequence[tuple[NewJob, UniqueKey, int]]) -> None:
    """New jobs (each with its key and its pk) hold their keys, which are free or their own. Their rows in
    `more` keep them from the fast paths."""
    notes: list[tuple[object, ...]] = []
    live: list[tuple[object, ...]] = []
    periods: list[tuple[object, ...]] = []
    for job, unique, pk in jobs:
        until = until_code(unique)
        notes.append((pk, unique.key, until))
        if until == PERIOD:
            periods.append((job.task, unique.key, job.id, step.now + (unique.period or 0), step.now))
            continue
        live.append((job.task, unique.key, pk, until == START))
        step.catalogue.freed_at_start |= until == START
    for statement, rows in (
        (SQL.note_key, notes), (SQL.hold, live), (SQL.hold_for_period, periods),
    ):  # fmt: skip
        if rows:
            step.db.executemany(statement, rows)


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
