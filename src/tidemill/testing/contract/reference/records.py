"""What the reference remembers."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Failure, JobState, NewJob
from tidemill.model.member import MemberInfo
from tidemill.model.queues.gate import GateKind
from tidemill.model.queues.layers import Layers
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.time import Instant

UNSAID: Final = -1
"""An instant of which the contract says nothing in this situation; not compared."""


class Gate(NamedTuple):
    """One gate of a queue: its own (name ""), a task's, or a key's."""

    queue: str
    kind: GateKind
    name: str = ""


@dataclass(slots=True)
class ReferenceJob:
    """A job, or its tombstone."""

    new: NewJob
    created_at: Instant
    due_at: Instant | None
    expires_at: Instant | None
    position: int
    """Grows each time it becomes ready: what `seq` must be in the order of."""
    state: JobState | None = None
    """None only while it is being stored."""
    waits: set[JobId] = field(default_factory=set)
    """Parents that it still waits for."""
    attempts: int = 0
    crashes: int = 0
    lost_runs: int = 0
    suspect: bool = False
    cancel_requested: bool = False
    replays: int = 0
    token: bytes | None = None
    """Of the last replay."""
    ready_at: Instant | None = None
    claimed_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    member: str = ""
    claimant: bytes | None = None
    """While it runs."""
    number: int = 0
    """Of the claim that took it."""
    fence: int | None = None
    settled_fence: int | None = None
    reason: str | None = None
    snoozes: int = 0
    """Why its last run was released."""
    settled: set[int] = field(default_factory=set)
    """Every fence that was ever settled."""
    has_body: bool = True
    result: bytes | None = None
    progress: bytes | None = None
    failures: list[Failure] = field(default_factory=list)
    tombstone: bool = False
    replaced_by: list[JobId] = field(default_factory=list)
    """The last ids of calls that replaced it."""

    @property
    def id(self) -> JobId:
        return self.new.id

    @property
    def queue(self) -> str:
        return self.new.queue

    def due(self, now: Instant) -> bool:
        return self.due_at is None or self.due_at <= now

    def expired(self, now: Instant) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(slots=True)
class RateLog:
    """The starts behind a gate: those since its rate took force certainly count, earlier ones may."""

    rate: Rate
    since: list[tuple[Instant, int]] = field(default_factory=list)
    before: list[tuple[Instant, int]] = field(default_factory=list)


@dataclass(slots=True)
class QueueRecord:
    """A queue, with the logs of its gates."""

    name: str
    created_at: Instant
    options: QueueOptions = field(default_factory=QueueOptions)
    layers: Layers = field(default_factory=Layers)
    version: int = 0
    paused_at: Instant | None = None
    paused_by: str = ""
    paused_why: str = ""
    logs: dict[Gate, RateLog] = field(default_factory=dict)


@dataclass(slots=True)
class ReferenceMember:
    """A member known by its heartbeats."""

    info: MemberInfo
    since: Instant
    heartbeat_at: Instant
    steady_since: Instant


@dataclass(slots=True)
class Position:
    """Where a claimant stopped: the lane it served last, and how much of its turn was used."""

    group: str
    given: int


@dataclass(slots=True)
class ClaimantRecord:
    """One worker process of a member."""

    member: bytes
    last_number: int = 0
    """The last claim number that took jobs."""
    retired_at: Instant | None = None
    maybe_retired: bool = False
    """Its member was dropped before it ever took a job: an engine may or may not know of it."""
    last_queues: tuple[str | None, ...] = (None,)
    """The queue that gave its last job; several where the contract can be read in several ways."""
    positions: dict[tuple[str, ...], Position] = field(default_factory=dict)
    """By queue and priority, by queue, and over all: the contract does not say how fine they are."""
