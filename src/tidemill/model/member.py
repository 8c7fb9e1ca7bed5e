"""Members: process groups that send heartbeats, and what their silence means.

A supervisor sends heartbeats for itself and its children, every 2 s; its lease is 10 s. All times are the
engine's. A sweeper may declare others gone only while its own view is good: after a full lease of
heartbeats without a gap of more than two heartbeats, because an outage silences all members alike.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b

import msgspec

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.time import SECOND, Instant, Span

CONTROLLER = "controller"
"""The role of those who stand for controller."""

HEARTBEAT: Span = 2 * SECOND
LEASE: Span = 10 * SECOND
MISSED_HEARTBEATS = 2
"""A gap of more than this many heartbeats restarts a sweeper's wait, and makes a member late."""


MARK_SIZE = 4
"""Bytes of a task's mark: of 2,000 tasks and a name that is none of them, one in two million is mistaken."""
TASKS_LIMIT = 2_000
"""A member with more tasks does not say which."""


class Health(StrEnum):
    HEALTHY = "healthy"
    LATE = "late"
    """More than two heartbeats silent; its lease still runs."""
    GONE = "gone"
    """Silent for its whole lease: a sweeper may give its jobs to others."""


class MemberInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a member says of itself with every heartbeat."""

    id: bytes
    """16 bytes, new for every start of the process group."""
    name: str
    """For people: host:pid."""
    host: str = ""
    pid: int = 0
    version: str = ""
    roles: tuple[str, ...] = ("worker",)
    queues: tuple[str, ...] = ()
    slots: int = 0
    detail: bytes | None = None
    """A `Detail` in JSON."""
    app: str = ""
    """The app whose code its workers have loaded, `module:attribute`."""
    schedules: tuple[str, ...] | None = None
    """The names of the schedules which that code declares; None: nothing is loaded yet."""
    declares: tuple[str, ...] | None = None
    """The queues of which that code says something; None: nothing is loaded yet."""
    tasks: bytes | None = None
    """The marks of the tasks which that code has (`marks_of_tasks`); None: nothing is loaded yet, or there
    are too many to say."""
    heartbeat: Span = HEARTBEAT
    lease: Span = LEASE


class RunDetail(msgspec.Struct, frozen=True):
    """A job that a process has."""

    id: str
    """Dashed, as people read it."""
    for_s: float | None = None
    """How long it has been running; None: it waits, runs in a process of its own, or has just ended."""


class ProcessDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One process that runs jobs, as its member sees it."""

    pid: int = 0
    memory: int | None = None
    """Resident bytes."""
    held: int = 0
    """Jobs that it has: running, waiting for a slot, or ended and not yet settled."""
    started: int = 0
    """Those that run."""
    loop_silent_s: float = 0.0
    """How long its loop owes an answer: more than a moment means blocked."""
    runs: tuple[RunDetail, ...] = ()
    """Some of those it has, the longest running first."""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """What a member says of itself for people. Everything may be missing: other versions say other things."""

    memory: int | None = None
    """Resident bytes of the process that sends the heartbeats."""
    processes: tuple[ProcessDetail, ...] = ()


class ClaimantHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a child holds. A running job of an answered claim that is not held is released."""

    claimant: bytes
    answered_through: int
    """The highest claim number whose answer the child has received."""
    held: tuple[Fence, ...]
    """Every run it has: waiting in its buffer, running, or with a settle or release not yet answered."""


class StopRequest(msgspec.Struct, frozen=True):
    """A running job that was asked to stop."""

    id: JobId
    fence: Fence


class HeartbeatReply(msgspec.Struct, kw_only=True):
    """The engine's answer to a heartbeat."""

    number: int
    """Grows with every heartbeat in the namespace; one smaller than seen before means lost data."""
    now: Instant
    new: bool
    """The engine did not know this member: it is new, or was gone and has lost its jobs."""
    lost: list[Fence]
    """Held, says the heartbeat, but no longer ours."""
    stop_requests: list[StopRequest]
    """Running jobs of this member that were asked to stop."""
    options: int = 0
    """Another number after every change of the options in force of some queue: read them again."""
    rolled_back: bool = False
    """The engine has found that it lost data since this member's last heartbeat. False proves nothing: a loss
    that left no trace in what this member knows is not seen."""


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A member as the engine sees it."""

    info: MemberInfo
    since: Instant
    heartbeat_at: Instant
    steady_since: Instant
    """Since when its heartbeats have come without a gap of more than two heartbeats."""
    health: Health
    running: int


def detail_of(info: MemberInfo) -> Detail:
    """Read; what cannot be read is left out, because it is only for people."""
    try:
        return Detail() if info.detail is None else msgspec.json.decode(info.detail, type=Detail)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Detail()


def marks_of_tasks(names: Iterable[str]) -> bytes | None:
    """A short mark for each task, in order: the record goes with every heartbeat, and names are long.
    A reader that has a name can tell whether it is among them."""
    marks = sorted({_mark(name) for name in names})
    return b"".join(marks) if len(marks) <= TASKS_LIMIT else None


def knows_task(info: MemberInfo, name: str) -> bool | None:
    """Whether a member's code has the task; None: it does not say."""
    if info.tasks is None:
        return None
    return _mark(name) in _marks(info.tasks)


@lru_cache(4_096)
def _mark(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=MARK_SIZE).digest()


@lru_cache(256)
def _marks(tasks: bytes) -> frozenset[bytes]:
    return frozenset(tasks[at : at + MARK_SIZE] for at in range(0, len(tasks), MARK_SIZE))


def without_controller(members: Iterable[MemberRecord]) -> bool:
    """Members are there, and none of them stands for controller: the cluster's chores are not done."""
    there = [member for member in members if member.health is not Health.GONE]
    return bool(there) and not any(CONTROLLER in member.info.roles for member in there)


NO_CONTROLLER = (
    "no member stands for controller: schedules do not fire and finished jobs are not deleted; start "
    "a worker without --no-controller, or `tidemill controller`"
)


def health(member: MemberInfo, heartbeat_at: Instant, now: Instant) -> Health:
    """Healthy, late or gone, by the engine's clock."""
    silence = now - heartbeat_at
    if silence > member.lease:
        return Health.GONE
    return Health.LATE if silence > MISSED_HEARTBEATS * member.heartbeat else Health.HEALTHY


def steady_after_heartbeat(
    member: MemberInfo, heartbeat_at: Instant, steady_since: Instant, now: Instant
) -> Instant:
    """A gap of more than two heartbeats restarts the wait."""
    return now if now - heartbeat_at > MISSED_HEARTBEATS * member.heartbeat else steady_since


def may_sweep(member: MemberInfo, heartbeat_at: Instant, steady_since: Instant, now: Instant) -> bool:
    """Whether this member may declare others gone: silence is evidence only while the engine was
    reachable, and the sweeper's own unbroken heartbeats are the proof that it was."""
    unbroken = now - heartbeat_at <= MISSED_HEARTBEATS * member.heartbeat
    return unbroken and now - steady_since >= member.lease
