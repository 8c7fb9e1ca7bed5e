"""A job that dies leaves a job of its handler, if it has one."""

from itertools import count

import msgspec

from tidemill.engine.shared.checks import check_entries
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs import storing
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import READY, Step
from tidemill.model.errors import BadInput
from tidemill.model.ids import handler_id
from tidemill.model.jobs.death import Death, handler_job
from tidemill.model.jobs.job import Failure
from tidemill.model.view import TaskEntry

SQL = load_statements("tidemill.engines.sqlite", "deaths")

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
    handler = handler_job(name, _readable(entry), death)
    step.handled += len(body)
    for number in count(replays + 1):
        if storing.store_all(step, (handler,)):
            break
        handler = msgspec.structs.replace(handler, id=handler_id(job.id, number))
    queue = step.catalogue.by_name[handler.queue]
    step.moved(handler.id, READY, queue.pk, handler.task)


def _readable(entry: bytes | None) -> TaskEntry | None:
    """What the catalogue says of a task. What cannot be read, as a later release may publish it, must not be
    in the way of a death."""
    if entry is None:
        return None
    try:
        read = _entry(entry)
        check_entries([read])
    except (msgspec.DecodeError, BadInput):
        return None
    return read
