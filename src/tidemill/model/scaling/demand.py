"""Demand: how many slots, and how many workers, the jobs of a queue want. Pure arithmetic.

A queue wants as many slots as have work now, and enough for what waits to begin within `wait_s`:

    jobs that can start x seconds a job / wait_s

It never wants more slots than it has jobs for. Jobs that no additional slot would start are not counted:
those of a paused queue, those above the queue's concurrency, and those that its rate does not let start
within `wait_s`. Where nothing is known of how long a job takes, each waiting job wants a slot.
"""

from collections.abc import Iterable, Sequence
from math import ceil

import msgspec

from tidemill.model.errors import UnknownQueue
from tidemill.model.member import Health, MemberRecord
from tidemill.model.names import nearest
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND, Span
from tidemill.model.view import Finished, QueueCounts, QueueInfo

WAIT_S = 2.0
"""How long a job may wait for a slot, unless a setting says otherwise."""


class QueueDemand(msgspec.Struct, frozen=True, kw_only=True):
    """What one queue has, and what it wants."""

    queue: str
    workers: int
    """How many workers it wants. 0: it has no work."""
    slots: int
    """How many slots it wants."""
    ready: int
    running: int
    startable: int
    """Those of the ready jobs that a free slot would start."""
    paused: bool
    live_workers: int
    """How many workers take from it now."""
    live_slots: int


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What some queues want together. A worker serves all of them, so their workers do not simply add up."""

    workers: int
    slots: int
    slots_per_worker: int
    live_workers: int
    queues: tuple[QueueDemand, ...]


def startable(ready: int, running: int, options: QueueOptions, wait_s: float) -> int:
    """How many of the ready jobs free slots could start within `wait_s`, by the queue's own limit. Limits of
    keys and tasks are not looked at: which jobs wait behind them is not counted anywhere."""
    if options.concurrency is not None:
        ready = min(ready, max(0, options.concurrency - running))
    if options.rate is not None:
        ready = min(ready, ceil(options.rate.count * wait_s / options.rate.per))
    return ready


def slots_wanted(*, running: int, startable: int, run_s: float | None, wait_s: float) -> int:
    """How many slots these jobs want. `run_s`: how long a slot is occupied by one job; None: not known."""
    if run_s is None:
        return running + startable
    return min(running + startable, max(running, ceil(startable * run_s / wait_s)))


def mean_run_s(running: int, ended: Finished, window: Span) -> float | None:
    """How long a job takes, by Little's law: so many run at once, so many ended in this time."""
    count = ended.completed + ended.failed + ended.cancelled
    return running * window / SECOND / count if count and running else None


def demand_of(
    counts: Iterable[QueueCounts],
    queues: Iterable[QueueInfo],
    members: Iterable[MemberRecord],
    *,
    only: str | None = None,
    window: Span,
    slots_per_worker: int,
    wait_s: float = WAIT_S,
) -> Demand:
    """What each queue wants, or `only` this one. `window`: the time in which the counts of what ended were
    taken. `slots_per_worker`: of a worker where none is live; else the live ones say it."""
    known = {queue.name: queue for queue in queues}
    if only is not None and only not in known:
        raise UnknownQueue(f"there is no queue {only!r}{nearest(only, known)}")
    live = [one for one in members if one.health is not Health.GONE and "worker" in one.info.roles]
    found = [
        _queue_demand(one, known[one.queue], live, window, slots_per_worker, wait_s)
        for one in counts
        if one.queue in known and only in (None, one.queue)
    ]
    taking = [one for one in live if only is None or only in one.info.queues]
    each = _slots_each(taking, slots_per_worker)
    slots = sum(one.slots for one in found)
    return Demand(
        workers=ceil(slots / each),
        slots=slots,
        slots_per_worker=each,
        live_workers=len(taking),
        queues=tuple(found),
    )


def _queue_demand(
    counts: QueueCounts,
    queue: QueueInfo,
    live: Sequence[MemberRecord],
    window: Span,
    slots_per_worker: int,
    wait_s: float,
) -> QueueDemand:
    paused = queue.paused_at is not None
    can_start = 0 if paused else startable(counts.ready, counts.running, queue.options, wait_s)
    run_s = mean_run_s(counts.running, counts.window, window)
    slots = slots_wanted(running=counts.running, startable=can_start, run_s=run_s, wait_s=wait_s)
    taking = [one for one in live if queue.name in one.info.queues]
    return QueueDemand(
        queue=queue.name,
        workers=ceil(slots / _slots_each(taking, slots_per_worker)),
        slots=slots,
        ready=counts.ready,
        running=counts.running,
        startable=can_start,
        paused=paused,
        live_workers=len(taking),
        live_slots=sum(one.info.slots for one in taking),
    )


def _slots_each(taking: Sequence[MemberRecord], otherwise: int) -> int:
    slots = sum(one.info.slots for one in taking)
    return max(1, slots // len(taking)) if slots else otherwise
