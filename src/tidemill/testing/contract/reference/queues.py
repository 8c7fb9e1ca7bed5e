"""The reference for queues: options and pauses."""

from collections.abc import Mapping, Sequence

from tidemill.model.errors import QueueChanged, UnknownQueue
from tidemill.model.queues.gate import permits_of, step_length
from tidemill.model.queues.layers import (
    Declaration,
    Fields,
    Layers,
    check_overrides,
    effective,
    fields_of,
    with_declaration,
    with_overrides,
    without_declaration,
    without_overrides,
)
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.time import Instant
from tidemill.testing.contract.reference.records import Gate, QueueRecord
from tidemill.testing.contract.reference.store import ReferenceStore


class ReferenceQueues:
    """What operators do to queues."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def declare(self, app: str, declarations: Mapping[str, Declaration], *, now: Instant) -> None:
        for name, each in declarations.items():
            queue = self._store.queue(name, now)
            self._change(queue, with_declaration(queue.layers, app, each))

    def retire(self, name: str, app: str, *, declared_at: Instant) -> bool:
        queue = self._known(name)
        return self._change(queue, without_declaration(queue.layers, app, declared_at))

    def override(
        self, name: str, fields: Fields, *, by: str, why: str, now: Instant, version: int | None = None
    ) -> None:
        queue = self._known(name)
        check_overrides(queue.layers, fields)
        self._change(queue, with_overrides(queue.layers, fields, by=by, why=why, at=now), version)

    def reset(self, name: str, fields: Sequence[str] | None, *, version: int | None = None) -> None:
        queue = self._known(name)
        self._change(queue, without_overrides(queue.layers, fields), version)

    def configure(self, name: str, options: QueueOptions, *, now: Instant) -> None:
        """One app that starts now declares these options, and nothing else."""
        self.declare("shop", {name: Declaration(fields=fields_of(options), declared_at=now)}, now=now)

    def _change(self, queue: QueueRecord, layers: Layers, version: int | None = None) -> bool:
        if layers == queue.layers:
            return False
        if version is not None and version != queue.version:
            raise QueueChanged(queue.name)
        queue.layers, queue.version = layers, queue.version + 1
        options = effective(layers).options
        if options != queue.options:
            self._store.options += 1
            self._put_in_force(queue, options)
        return True

    def _put_in_force(self, queue: QueueRecord, options: QueueOptions) -> None:
        """A rate that stays goes on counting."""
        former = {gate: rate_of(queue, gate) for gate in queue.logs}
        queue.options = options
        for gate, log in queue.logs.items():
            rate = rate_of(queue, gate)
            if rate != log.rate:
                log.before, log.since = sorted(log.before + log.since), []
            old = former[gate]
            if (
                rate and old and permits_of(rate).span != permits_of(old).span
            ):  # an entry stands for starts up to the end of its step
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
    limit = options.limit_of_task(gate.name) if gate.kind == "task" else options.limit_of_key(gate.name)
    return limit.rate if limit else None


def concurrency_of(queue: QueueRecord, gate: Gate) -> int | None:
    """The same for concurrency."""
    options = queue.options
    if gate.kind == "queue":
        return options.concurrency
    limit = options.limit_of_task(gate.name) if gate.kind == "task" else options.limit_of_key(gate.name)
    return limit.concurrency if limit else None
