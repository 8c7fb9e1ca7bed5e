"""Which gates have room. Where a rate changed, both readings of its log are allowed."""

from typing import NamedTuple

from tidemill.model.jobs.job import JobState
from tidemill.model.queues.gate import opens_at, pressed, room_of, step_at
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.testing.contract.reference.queues import concurrency_of, rate_of
from tidemill.testing.contract.reference.records import Gate, QueueRecord, RateLog, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore


class Room(NamedTuple):
    """How many more may start: an engine must admit `sure`, and may admit up to `most`."""

    sure: int
    most: int


class Pressing(NamedTuple):
    """Whether a gate is pressed: surely, or by one reading of its log."""

    sure: bool
    maybe: bool


UNLIMITED = Room(1 << 30, 1 << 30)


def gates_of(queue: str, options: QueueOptions, task: str, key: str | None) -> list[Gate]:
    """The gates that a job of this task and key must pass, widest first."""
    gates = []
    if options.own:
        gates.append(Gate(queue, "queue"))
    if options.limit_of_task(task):
        gates.append(Gate(queue, "task", task))
    if options.limit_of_key(key):
        gates.append(Gate(queue, "key", key or ""))
    return gates


def gates_for(store: ReferenceStore, job: ReferenceJob) -> list[Gate]:
    """The gates that a job stands behind now."""
    return gates_of(job.queue, store.queues[job.queue].options, job.new.task, job.new.key)


def room(store: ReferenceStore, gate: Gate, now: Instant) -> Room:
    """How many starts a gate admits at this instant."""
    queue = store.queues[gate.queue]
    sure = most = UNLIMITED.sure
    concurrency, log = concurrency_of(queue, gate), log_of(queue, gate)
    if concurrency is not None:
        holders = [job for job in store.in_state(JobState.RUNNING) if gate in gates_for(store, job)]
        sure = most = concurrency - len(holders)
    if log is not None:
        sure = min(sure, room_of(log.rate, log.before + log.since, now))
        most = min(most, room_of(log.rate, log.since, now))
    return Room(sure, most)


def room_for(store: ReferenceStore, job: ReferenceJob, now: Instant) -> Room:
    """How many starts all the gates of a job admit together."""
    rooms = [UNLIMITED, *(room(store, gate, now) for gate in gates_for(store, job))]
    return Room(min(each.sure for each in rooms), min(each.most for each in rooms))


def log_start(store: ReferenceStore, job: ReferenceJob, now: Instant) -> None:
    """A start takes a permit of each rate, for good."""
    for gate in gates_for(store, job):
        log = log_of(store.queues[gate.queue], gate)
        if log is not None:
            log.since.append((step_at(log.rate, now), 1))


def openings(store: ReferenceStore, job: ReferenceJob, now: Instant) -> list[Instant]:
    """When each used-up rate before this job opens again, by the latest reading."""
    moments = []
    for gate in gates_for(store, job):
        log = log_of(store.queues[gate.queue], gate)
        if log is not None and room_of(log.rate, log.before + log.since, now) <= 0:
            moments.append(opens_at(log.rate, log.before + log.since, now))
    return moments


def is_pressed(store: ReferenceStore, gate: Gate, now: Instant) -> Pressing:
    """Whether runs behind this gate have to start with the delay."""
    log = log_of(store.queues[gate.queue], gate)
    if log is None:
        return Pressing(sure=False, maybe=False)
    return Pressing(pressed(log.rate, log.since, now), pressed(log.rate, log.before + log.since, now))


def log_of(queue: QueueRecord, gate: Gate) -> RateLog | None:
    """The log of a gate, if it has a rate now."""
    rate = rate_of(queue, gate)
    return None if rate is None else queue.logs.setdefault(gate, RateLog(rate))
