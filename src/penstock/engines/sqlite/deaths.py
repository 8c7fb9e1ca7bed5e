"""A job that dies leaves a job of its handler, if it has one."""

import msgspec

from penstock.engine.statements import load_statements
from penstock.engines.sqlite import storing
from penstock.engines.sqlite.facts import Facts
from penstock.engines.sqlite.step import READY, Step
from penstock.model.death import Death, handler_job
from penstock.model.job import Failure
from penstock.model.view import TaskEntry

SQL = load_statements(__package__, "deaths")

_failure = msgspec.json.Decoder(Failure).decode
_entry = msgspec.json.Decoder(TaskEntry).decode


def leave_handler(step: Step, job: Facts) -> None:
    """Before anything of the dead job is dropped, and after its last failure was recorded."""
    row = step.db.execute(SQL.dying, (job.pk,)).fetchone()
    if row is None:
        return
    name, attempts, crashes, replays, codec, body, failure, entry = row
    death = Death(
        id=job.id,
        task=job.task,
        queue=step.catalogue.by_pk[job.queue].name,
        key=job.key,
        attempts=attempts,
        crashes=crashes,
        replays=replays,
        failure=_failure(failure),
        codec=codec,
        body=body,
    )
    handler = handler_job(name, None if entry is None else _entry(entry), death)
    step.handled += len(body)
    if storing.store_all(step, (handler,)):
        queue = step.catalogue.by_name[handler.queue]
        step.moved(handler.id, READY, queue.pk, handler.task)
