"""The `transactions` facet: enqueue on a connection of the caller's own.

The statements look everything up themselves (queue, order, lane), because nothing may be read here.
A keyed queue's lane is not worked out in SQL: such jobs are stored in the plain lane, which is marked,
so that the next claim of that queue puts them where they belong before it takes any.
"""

from collections.abc import Sequence

from penstock.engine.statements import load_statements
from penstock.engines.sqlite import enqueue
from penstock.engines.sqlite.catalogue import DEFAULT_OPTIONS
from penstock.model.errors import BadInput
from penstock.model.job import NewJob
from penstock.model.view import Statement

SQL = load_statements(__package__, "transactions")

_STEPS = (
    SQL.draw_seq, SQL.insert_job, SQL.put_ready, SQL.put_due, SQL.put_expiring, SQL.announce_lane,
    SQL.mark_lane, SQL.count_job,
)  # fmt: skip


class SqliteTransactions:
    """See `penstock.engine.protocol.Transactions`."""

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Statement]:
        enqueue.check(jobs)
        if any(job.after for job in jobs):
            raise BadInput("after= cannot be used with transaction=: enqueue the children separately")
        statements = []
        for queue in dict.fromkeys(job.queue for job in jobs):
            statements.append(Statement(SQL.add_queue, {"name": queue, "options": DEFAULT_OPTIONS}))
            statements.append(Statement(SQL.note_queue, {"name": queue}))
        for job in jobs:
            values = _values(job)
            statements += [Statement(text, values) for text in _STEPS]
        return statements


def _values(job: NewJob) -> dict[str, object]:
    return {
        "id": job.id,
        "queue": job.queue,
        "priority": job.priority,
        "task": job.task,
        "key": job.key or "",
        "max_attempts": job.attempts,
        "at": job.at,
        "delay": job.delay,
        "expires": job.expires,
        "timeout": job.timeout,
        "retry": enqueue.encode_retry(job.retry),
        "on_dead": job.on_dead,
        "schedule": job.schedule,
        "codec": job.codec,
        "headers": job.headers,
        "body": job.body,
    }
