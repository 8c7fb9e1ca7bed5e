"""Who is there: the members of the cluster, for programs."""

from dataclasses import dataclass
from datetime import datetime

from tidemill.app.access.session import EngineSession
from tidemill.model import member as model
from tidemill.model.member import Health, detail_of, knows_task
from tidemill.model.time import moment_of
from tidemill.model.view import CONTROLLER_LEASE


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberProcess:
    """One process of a member, as its supervisor saw it with the last heartbeat."""

    pid: int
    memory: int | None
    """Resident bytes; None: not known."""
    held: int
    """Jobs that it has: running, waiting for a slot, or ended and not yet settled."""
    running: int
    jobs: tuple[str, ...]
    """The ids of up to 10 of those it has, the longest running first."""
    loop_silent: float
    """How many seconds its loop owes an answer: more than a moment means blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process group that sends heartbeats: a supervisor with its worker processes, a program with a worker
    inside, or a controller."""

    name: str
    """host:pid"""
    host: str
    pid: int
    version: str
    health: Health
    roles: tuple[str, ...]
    """"worker": it runs jobs. "controller": it stands for controller."""
    controller: bool
    """It is the controller now."""
    queues: tuple[str, ...]
    tasks: tuple[str, ...] | None
    """The tasks that its code has, of those that workers have published; None: not known."""
    slots: int
    """How many jobs it may run at once."""
    running: int
    """How many it has, by the engine's account."""
    since: datetime
    heartbeat_at: datetime
    """Its last heartbeat, by the engine's clock."""
    memory: int | None
    """Resident bytes of the process that sends the heartbeats; None: not known."""
    processes: tuple[MemberProcess, ...]


async def members(session: EngineSession) -> list[Member]:
    """All that the engine knows, by name."""
    engine = session.engine
    elected = [lease.holder for lease in await engine.leases.list() if lease.name == CONTROLLER_LEASE]
    catalogue = sorted(entry.name for entry in await engine.tasks.list())
    return [_member(one, one.info.id.hex() in elected, catalogue) for one in await engine.members.list()]


def _member(one: model.MemberRecord, controller: bool, catalogue: list[str]) -> Member:
    info, detail = one.info, detail_of(one.info)
    return Member(
        name=info.name,
        host=info.host,
        pid=info.pid,
        version=info.version,
        health=one.health,
        roles=info.roles,
        controller=controller,
        queues=info.queues,
        tasks=None if info.tasks is None else tuple(name for name in catalogue if knows_task(info, name)),
        slots=info.slots,
        running=one.running,
        since=moment_of(one.since),
        heartbeat_at=moment_of(one.heartbeat_at),
        memory=detail.memory,
        processes=tuple(
            MemberProcess(
                pid=process.pid,
                memory=process.memory,
                held=process.held,
                running=process.started,
                jobs=tuple(run.id for run in process.runs),
                loop_silent=process.loop_silent_s,
            )
            for process in detail.processes
        ),
    )
