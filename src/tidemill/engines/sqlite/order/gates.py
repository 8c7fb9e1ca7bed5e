"""Gates in SQLite: how much room each limit has, and which lanes are parked until it has some again.

Concurrency is counted: `held` has exactly the running jobs of queues with limits. A rate is the
sum of its log. A claim works out each gate that it meets once (`Rooms`), counts down in memory while
it takes, and at the end logs its starts and parks the gates that are now full. Parking a key's gate
marks the few lanes of that key, so that a claim's cost depends on open lanes alone; a queue's or
task's gate is one row. Whatever ends a run reopens the gates that it stood behind.
"""

import json
from collections.abc import Iterable

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.queues.gate import (
    START_DELAY,
    GateKind,
    counts_until,
    oldest_counting,
    opens_at,
    permits_of,
    pressed,
    room_of,
    step_at,
    step_length,
)
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import Instant, Span

SQL = load_statements("tidemill.engines.sqlite", "gates")

HELD = {"queue": SQL.held_by_queue, "task": SQL.held_by_task, "key": SQL.held_by_key}
"""How many run behind a gate, counted up to a bound."""
_PLENTY = 1 << 40


class GateRoom:
    """How much one gate still lets through in this claim."""

    __slots__ = ("kind", "left", "name", "rate", "taken", "was_parked")

    def __init__(self, kind: GateKind, name: str, rate: Rate | None, left: int, *, was_parked: bool) -> None:
        self.kind = kind
        self.name = name
        self.rate = rate
        self.left = left
        self.taken = 0
        self.was_parked = was_parked

    def take(self) -> None:
        self.left -= 1
        self.taken += 1


class Rooms:
    """The gates of one queue, as one claim meets them."""

    def __init__(self, step: Step, queue: KnownQueue) -> None:
        self._step = step
        self._queue = queue
        self._rooms: dict[tuple[GateKind, str], GateRoom] = {}
        if queue.limited:
            _wake(step, queue.pk)

    def behind(self, task: str, key: str | None) -> list[GateRoom]:
        """The rooms that a job of this task and key must pass."""
        if not self._queue.limited:
            return []
        options = self._queue.options
        rooms = []
        if own := options.own:
            rooms.append(self._room("queue", "", own))
        if limit := options.limit_of_task(task):
            rooms.append(self._room("task", task, limit))
        if limit := options.limit_of_key(key):
            rooms.append(self._room("key", key or "", limit))
        return rooms

    def own_is_full(self) -> bool:
        """Whether the queue's own gate lets nothing through."""
        own = self._queue.options.own
        return bool(own) and self._room("queue", "", own).left <= 0

    def open_tasks(self) -> list[str]:
        """The limited tasks whose gates have room; "" stands for all others."""
        tasks = self._queue.options.per_task
        return ["", *(t for t, limit in tasks.items() if limit and self._room("task", t, limit).left > 0)]

    def close(self) -> bool:
        """Log the starts, park what is full. Returns whether a rate is pressed that gave a permit."""
        step, queue, hurry = self._step, self._queue.pk, False
        for room in self._rooms.values():
            if room.taken and room.rate is not None:
                at = step_at(room.rate, step.now)
                until = counts_until(room.rate, at) + START_DELAY
                step.db.execute(SQL.log_starts, (queue, room.kind, room.name, at, room.taken, until))
                log = self._log(room.kind, room.name, room.rate, before=START_DELAY)
                hurry = hurry or pressed(room.rate, log, step.now)
            if room.left <= 0 and not room.was_parked:
                self._park(room)
        return hurry

    def _room(self, kind: GateKind, name: str, limit: Limit) -> GateRoom:
        room = self._rooms.get((kind, name))
        if room is None:
            room = self._rooms[kind, name] = self._measure(kind, name, limit)
        return room

    def _measure(self, kind: GateKind, name: str, limit: Limit) -> GateRoom:
        step, queue = self._step, self._queue.pk
        if kind != "key" and step.db.execute(SQL.is_parked, (queue, kind, name)).fetchone():
            return GateRoom(kind, name, limit.rate, 0, was_parked=True)
        left = _PLENTY
        if limit.concurrency is not None:
            (held,) = step.db.execute(HELD[kind], (queue, name, limit.concurrency)).fetchone()
            left = limit.concurrency - held
        if limit.rate is not None:
            left = min(left, room_of(limit.rate, self._log(kind, name, limit.rate), step.now))
        return GateRoom(kind, name, limit.rate, left, was_parked=False)

    def _log(self, kind: GateKind, name: str, rate: Rate, before: Span = 0) -> list[tuple[Instant, int]]:
        """What counts; and what counted until so long before."""
        expired = oldest_counting(rate, self._step.now) - before
        return self._step.db.execute(SQL.starts, (self._queue.pk, kind, name, expired)).fetchall()

    def _park(self, room: GateRoom) -> None:
        step, queue, wake_at = self._step, self._queue.pk, None
        if room.rate is not None:
            log = self._log(room.kind, room.name, room.rate)
            if room_of(room.rate, log, step.now) <= 0:
                wake_at = opens_at(room.rate, log, step.now)
        step.db.execute(SQL.park, (queue, room.kind, room.name, wake_at))
        if room.kind == "key":
            step.db.execute(SQL.mark_lanes, (1, queue, room.name))


def reopen(step: Step, runs: Iterable[tuple[int, str, str | None]]) -> None:
    """Runs of (queue, task, key) ended: their gates have room again."""
    for queue, task, key in runs:
        for kind, name in (("queue", ""), ("task", task), ("key", key or "")):
            if step.db.execute(SQL.unpark, (queue, kind, name)).rowcount:
                _opened(step, queue, kind, name)


def reopen_all(step: Step, queue: int) -> None:
    """The queue's limits changed: let the next claim measure every gate anew. Running jobs are held by a
    queue with limits, and by no other."""
    step.db.execute(SQL.unpark_queue, (queue,))
    step.db.execute(SQL.mark_all_lanes, (queue,))
    limited = step.catalogue.by_pk[queue].limited
    step.db.execute(SQL.hold_running if limited else SQL.let_go_all, (queue,))
    step.signal_ready(queue)


def rates_changed(step: Step, queue: int, before: QueueOptions, after: QueueOptions) -> None:
    """Date the logs of rates that have another window now, so that what they hold counts by the new one:
    an entry stands for starts up to the end of its step."""
    named = sorted({*before.limits, *after.limits})
    pairs: list[tuple[GateKind, str | None, Limit | None, Limit | None]] = [
        ("queue", "", before.own, after.own),
        ("key", None, before.per_key, after.per_key),
        *(("key", key, before.limit_of_key(key), after.limit_of_key(key)) for key in named),
        *(("task", task, before.per_task[task], after.limit_of_task(task)) for task in before.per_task),
    ]
    for kind, name, old, new in pairs:
        if not (old and new and old.rate and new.rate):
            continue
        after_span = permits_of(new.rate).span
        if permits_of(old.rate).span != after_span:
            end = step_length(old.rate)
            shift = (end - step_length(new.rate), end + after_span + START_DELAY)
            others = json.dumps([] if name is not None else named)
            step.db.execute(SQL.redate_starts, (*shift, queue, kind, name, name, others))
            step.db.execute(SQL.settle_redated, (queue,))


def next_wake(step: Step, queue: int) -> Instant | None:
    """When a rate of this queue opens again."""
    (wake_at,) = step.db.execute(SQL.next_wake, (queue,)).fetchone()
    return None if wake_at is None else int(wake_at)


def _wake(step: Step, queue: int) -> None:
    """Reopen the gates whose time has come."""
    for kind, name in step.db.execute(SQL.wake, (queue, step.now, BATCH_LIMIT)).fetchall():
        _opened(step, queue, kind, name)


def _opened(step: Step, queue: int, kind: str, name: str) -> None:
    if kind == "key":
        step.db.execute(SQL.mark_lanes, (0, queue, name))
    step.signal_ready(queue)
