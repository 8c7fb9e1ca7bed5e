"""Statistics in SQLite: added by heartbeats, sampled by the controller, read by `inspect.stats`."""

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

import msgspec

from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.stats import StatsSpan
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.stats.batch import OTHER_TASKS, TASKS_KEPT, StatsRow, whole_queues
from tidemill.model.stats.histogram import Packed, add_packed
from tidemill.model.stats.sample import QueueSample
from tidemill.model.stats.series import StatsSeries
from tidemill.model.time import MINUTE, Instant
from tidemill.model.view import Finished

SQL = load_statements("tidemill.engines.sqlite", "stats")

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Packed).decode

QUEUES, TASKS = 0, 1
"""Grains."""


def add(step: Step, rows: Sequence[StatsRow]) -> None:
    """Add a batch to the present minute."""
    minute = step.now - step.now % MINUTE
    for row in whole_queues(rows):
        _add_row(step.db, QUEUES, minute, row)
    (known,) = step.db.execute(SQL.tasks_of, (minute, OTHER_TASKS)).fetchone()
    for row in rows:
        place: StatsRow = row
        if row.task != OTHER_TASKS and _packed(step.db, TASKS, minute, row) is None:
            if known >= TASKS_KEPT:
                place = StatsRow(row.queue, OTHER_TASKS, row.packed)
            else:
                known += 1
        _add_row(step.db, TASKS, minute, place)


def _add_row(db: Connection, grain: int, minute: Instant, row: StatsRow) -> None:
    packed = add_packed(_packed(db, grain, minute, row) or (), row.packed)
    db.execute(SQL.put, (grain, minute, row.queue, row.task, _encode(packed)))


def _packed(db: Connection, grain: int, minute: Instant, row: StatsRow) -> Packed | None:
    found = db.execute(SQL.packed, (grain, minute, row.queue, row.task)).fetchone()
    return None if found is None else _decode(found[0])


def sample(step: Step, minute: Instant, samples: Iterable[QueueSample]) -> bool:
    """Note samples, unless the minute has some."""
    if step.db.execute(SQL.is_sampled, (minute,)).fetchone()[0]:
        return False
    step.db.executemany(
        SQL.sample,
        [(minute, each.queue, each.stock, each.arrived, each.oldest_ready) for each in samples],
    )
    return True


def read(db: Connection, span: StatsSpan) -> list[StatsSeries]:
    """What is known of a span."""
    bounds = (span.first, span.until, span.queue)
    for queue, task, minute, packed in db.execute(
        SQL.read, (TASKS if span.by_task else QUEUES, *bounds, span.task)
    ):
        span.add_cells(queue, task, minute, _decode(packed))
    if not span.by_task:
        for queue, minute, completed, failed, died, cancelled in db.execute(SQL.finished, bounds):
            ended = Finished(completed=completed, failed=failed, died=died, cancelled=cancelled)
            span.add_finished(queue, minute, ended)
        for row in db.execute(SQL.samples, bounds):
            span.add_sample(*row)
    return span.series()
