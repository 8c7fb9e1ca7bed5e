"""Members: process groups that beat, and what their silence means.

A supervisor beats for itself and its children, every 2 s; its lease is 10 s. All times are the
engine's. A sweeper may declare others gone only while its own view is good: after a full lease of
beats without a gap of more than two beats, because an outage silences everybody alike.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tidemill.model.ids import JobId
from tidemill.model.job import Fence
from tidemill.model.time import SECOND, Instant, Span

CONTROLLER = "controller"
"""The role of those who stand for controller."""

BEAT: Span = 2 * SECOND
LEASE: Span = 10 * SECOND
MISSED_BEATS = 2
"""A gap of more than this many beats restarts a sweeper's wait, and makes a member late."""


class Health(StrEnum):
    HEALTHY = "healthy"
    LATE = "late"
    """More than two beats silent; its lease still runs."""
    GONE = "gone"
    """Silent for its whole lease: a sweeper may give its jobs to others."""


class MemberInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How a member introduces itself with every beat."""

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
    beat: Span = BEAT
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
    """Resident bytes of the process that beats."""
    processes: tuple[ProcessDetail, ...] = ()


class ClaimantBeat(msgspec.Struct, frozen=True, kw_only=True):
    """What a child holds. A running job of an answered claim that is not held is released."""

    claimant: bytes
    answered_through: int
    """The highest claim number whose answer the child has received."""
    held: tuple[Fence, ...]
    """Every run it has: waiting in its buffer, running, or with a settle or release not yet answered."""


class Ask(msgspec.Struct, frozen=True):
    """A running job that was asked to stop."""

    id: JobId
    fence: Fence


class BeatReply(msgspec.Struct, kw_only=True):
    """The engine's answer to a beat."""

    number: int
    """Grows with every beat in the namespace; one smaller than seen before means lost data."""
    now: Instant
    new: bool
    """The engine did not know this member: it is new, or was gone and has lost its jobs."""
    lost: list[Fence]
    """Held, says the beat, but no longer ours."""
    asked: list[Ask]
    """Running jobs of this member that were asked to stop."""
    rolled_back: bool = False
    """The engine has found that it lost data since this member's last beat. False proves nothing: a loss that
    left no trace in what this member knows is not seen."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member as the engine sees it."""

    info: MemberInfo
    since: Instant
    beat_at: Instant
    steady_since: Instant
    """Since when its beats have come without a gap of more than two beats."""
    health: Health
    running: int


def detail_of(info: MemberInfo) -> Detail:
    """Read; what cannot be read is left out, because it is only for people."""
    try:
        return Detail() if info.detail is None else msgspec.json.decode(info.detail, type=Detail)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Detail()


def without_controller(members: Iterable[Member]) -> bool:
    """Members are there, and none of them stands for controller: nobody does the cluster's chores."""
    there = [member for member in members if member.health is not Health.GONE]
    return bool(there) and not any(CONTROLLER in member.info.roles for member in there)


NO_CONTROLLER = (
    "no member stands for controller: schedules do not fire and finished jobs are not deleted; start "
    "a worker without --no-controller, or `tidemill controller`"
)


def health(member: MemberInfo, beat_at: Instant, now: Instant) -> Health:
    """Healthy, late or gone, by the engine's clock."""
    silence = now - beat_at
    if silence > member.lease:
        return Health.GONE
    return Health.LATE if silence > MISSED_BEATS * member.beat else Health.HEALTHY


def steady_after_beat(member: MemberInfo, beat_at: Instant, steady_since: Instant, now: Instant) -> Instant:
    """A gap of more than two beats restarts the wait."""
    return now if now - beat_at > MISSED_BEATS * member.beat else steady_since


def may_sweep(member: MemberInfo, beat_at: Instant, steady_since: Instant, now: Instant) -> bool:
    """Whether this member may declare others gone: silence is evidence only while the engine was
    reachable, and the sweeper's own unbroken beats are the proof that it was."""
    unbroken = now - beat_at <= MISSED_BEATS * member.beat
    return unbroken and now - steady_since >= member.lease
