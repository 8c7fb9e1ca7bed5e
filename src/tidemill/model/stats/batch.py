"""What a member hands over with its heartbeats: how long jobs waited and ran since the last time.

Worker processes add up what they see. Their member sends the sums with its next heartbeat, under a number
that grows by one. Until that heartbeat is answered, the same batch goes with every heartbeat, under the same
number. So the engine applies each batch once, whatever replies are lost.

**Bounds.** Of a minute at most `TASKS_KEPT` tasks (each in its queue) have rows of their own. What other
tasks add goes to one row a queue, `OTHER_TASKS`, which no task can be named. A member chooses the tasks with
most jobs in each batch, so a task that does much is hardly ever among the others.
"""

from collections.abc import Iterable, Sequence

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue, check_task
from tidemill.model.stats.histogram import Packed, add_into, check_packed, pack

TASKS_KEPT = 200
"""So many pairs of queue and task have rows of their own in a minute."""
OTHER_TASKS = "other tasks"
"""The row of the rest of a queue's tasks. The name of a task has no space."""
WHOLE_QUEUE = ""
"""The row of all tasks of a queue."""
ROWS_LIMIT = 1_000
"""The most rows of one batch."""


class StatsRow(msgspec.Struct, frozen=True):
    """What was seen of one task's jobs in one queue."""

    queue: str
    task: str
    packed: Packed
    """How long they had waited when they were claimed, and how long those that ended ran."""


class StatsBatch(msgspec.Struct, frozen=True):
    """The sums of one member since the batch before."""

    number: int
    """1, 2, 3, ...: a batch whose number is not higher than that of the last one applied changes nothing."""
    rows: tuple[StatsRow, ...]


def merged(rows: Iterable[StatsRow]) -> list[StatsRow]:
    """One row for each queue and task, those with most jobs first; beyond `TASKS_KEPT` one row a queue."""
    sums: dict[tuple[str, str], dict[int, int]] = {}
    for row in rows:
        add_into(sums.setdefault((row.queue, row.task), {}), row.packed)
    jobs = {pair: sum(cells.values()) for pair, cells in sums.items() if pair[1] != OTHER_TASKS}
    kept = sorted(jobs, key=lambda pair: (-jobs[pair], pair))[:TASKS_KEPT]
    found = [StatsRow(*pair, pack(sums.pop(pair))) for pair in kept]
    others: dict[str, dict[int, int]] = {}
    for (queue, _), cells in sums.items():
        add_into(others.setdefault(queue, {}), pack(cells))
    found += [StatsRow(queue, OTHER_TASKS, pack(cells)) for queue, cells in others.items()]
    return found[:ROWS_LIMIT]


def whole_queues(rows: Iterable[StatsRow]) -> list[StatsRow]:
    """A row for each queue, of all its tasks."""
    sums: dict[str, dict[int, int]] = {}
    for row in rows:
        add_into(sums.setdefault(row.queue, {}), row.packed)
    return [StatsRow(queue, WHOLE_QUEUE, pack(cells)) for queue, cells in sums.items()]


def check_row(row: StatsRow) -> None:
    """Refuse a row that cannot be kept."""
    check_queue(row.queue)
    if row.task != OTHER_TASKS:
        check_task(row.task)
    check_packed(row.packed)


def check_rows(rows: Sequence[StatsRow]) -> None:
    """Refuse rows that cannot be kept."""
    if len(rows) > ROWS_LIMIT:
        raise BadInput(f"a batch of statistics has at most {ROWS_LIMIT:,} rows, not {len(rows):,}")
    for row in rows:
        check_row(row)
