"""Lanes: (queue, priority, group), the unit of order and fairness.

Within a lane jobs are taken by `seq` alone. Between lanes of a queue, priority is strict; lanes
of one priority take turns, in the order of their groups, each worker remembering where it stopped
(no shared hot row, and over many claims no lane starves).

A lane's group is empty, or the job's key if the queue is keyed; a task with a limit of its own is
put before it, so that a full task gate parks whole lanes and never single jobs. A job's *shape*
follows the queue's options of the moment; when these change, engines move the waiting jobs to
their new lanes in bounded steps before they claim from them (`seq` is kept).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.queues.queue import QueueOptions

PRIORITIES = range(11)
"""0 is taken first, 10 last."""
DEFAULT_PRIORITY = 5

_BETWEEN = "\x1f"

T = TypeVar("T")


class Lane(msgspec.Struct, frozen=True, order=True):
    """One line of jobs. Ordered by queue, priority, group: the order in which lanes take turns."""

    queue: str
    priority: int
    group: str = ""


def check_priority(priority: int) -> int:
    """The same number, or `BadInput`."""
    if isinstance(priority, bool) or not isinstance(priority, int) or priority not in PRIORITIES:
        raise BadInput(f"a priority is a whole number from 0 (first) to 10 (last), not {priority!r}")
    return priority


def group_of(options: QueueOptions, task: str, key: str | None) -> str:
    """The group of a job in a queue with these options."""
    group = (key or "") if options.keyed else ""
    if options.limit_of_task(task):
        return f"{task}{_BETWEEN}{group}"
    return group


def key_of(group: str) -> str:
    """The key that a group carries ("" for none)."""
    return group.rpartition(_BETWEEN)[2]


def weight_of(options: QueueOptions, group: str) -> int:
    """How many jobs a lane may give in one turn."""
    return options.weights.get(key_of(group), 1)


def turn_order(groups: Sequence[str], last: str | None) -> list[str]:
    """The groups in the order of their turns, beginning after the last one served."""
    ordered = sorted(groups)
    if last is None:
        return ordered
    return [g for g in ordered if g > last] + [g for g in ordered if g <= last]


def take_turns(lanes: Iterable[tuple[int, Iterator[T]]]) -> Iterator[tuple[int, T]]:
    """Weighted round robin over lanes (weight, its jobs in order): yields (index of lane, job).

    Lazy: a lane is asked for only when its first turn comes, a job only when it is really taken. A
    lane whose jobs end has no more to give now (empty, or its gate is full) and gets no further turn."""
    this_round: Iterable[tuple[int, int, Iterator[T]]] = (
        (index, weight, jobs) for index, (weight, jobs) in enumerate(lanes)
    )
    while this_round:
        next_round = []
        for lane in this_round:
            index, weight, jobs = lane
            for _ in range(weight):
                try:
                    job = next(jobs)
                except StopIteration:
                    break
                yield index, job
            else:
                next_round.append(lane)
        this_round = next_round
