"""The reference for queues: options and pauses."""

from tidemill.model.errors import UnknownQueue
from tidemill.model.queues.gate import step_length
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.time import Instant
from tidemill.testing.contract.reference.records import Gate, QueueRecord
from tidemill.testing.contract.reference.store import ReferenceStore


class ReferenceQueues:
    """What operators do to queues."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def configure(self, name: str, options: QueueOptions, *, now: Instant) -> None:
        """Replace the options. A rate that stays goes on counting."""
        queue = self._store.queue(name, now)
        former = {gate: rate_of(queue, gate) for gate in queue.logs}
        queue.options = options
        for gate, log in queue.logs.items():
            rate = rate_of(queue, gate)
            if rate != log.rate:
                log.before, log.since = sorted(log.before + log.since), []
            old = former[gate]
            if rate and old and rate.per != old.per:  # an entry stands for starts up to the end of its step
                later = step_length(old) - step_length(rate)
                log.before = [(step + later, count) for step, count in log.before]
            log.rate = rate or log.rate

    def pause(self, name: str, *, by: str, why: str, now: Instant) -> None:
        """The first pause stays as it is."""
        queue = self._known(name)
        if queue.paused_at is None:
            queue.paused_at, queue.paused_by, queue.paused_why = now, by, why

    def resume(self, name: str) -> None:
        queue = self._known(name)
        queue.paused_at, queue.paused_by, queue.paused_why = None, "", ""

    def _known(self, name: str) -> QueueRecord:
        if name not in self._store.queues:
            raise UnknownQueue(name)
        return self._store.queues[name]


def rate_of(queue: QueueRecord, gate: Gate) -> Rate | None:
    """The rate of a gate under the queue's options of this moment."""
    options = queue.options
    if gate.kind == "queue":
        return options.rate
    limit = options.limit_of_task(gate.name) if gate.kind == "task" else options.per_key
    return limit.rate if limit else None


def concurrency_of(queue: QueueRecord, gate: Gate) -> int | None:
    """The same for concurrency."""
    options = queue.options
    if gate.kind == "queue":
        return options.concurrency
    limit = options.limit_of_task(gate.name) if gate.kind == "task" else options.per_key
    return limit.concurrency if limit else None
