"""How a member introduces itself with every beat."""

import os
import socket
from collections.abc import Sequence
from importlib.metadata import version

import msgspec

from penstock.model.member import MemberInfo
from penstock.model.time import span_of
from penstock.worker.board import boot_ns
from penstock.worker.config import WorkerConfig
from penstock.worker.incarnation import Incarnation

VERSION = version("penstock")

_PAGE = os.sysconf("SC_PAGE_SIZE")


def introduction(member: bytes, config: WorkerConfig, incarnations: Sequence[Incarnation]) -> MemberInfo:
    """The record of this member now."""
    host, pid = socket.gethostname(), os.getpid()
    queues = {queue for one in incarnations if one.ready for queue in one.ready.queues}
    detail = {"memory": memory_of(pid), "processes": [_portrait(one) for one in incarnations]}
    return MemberInfo(
        id=member,
        name=f"{host}:{pid}",
        host=host,
        pid=pid,
        version=VERSION,
        queues=tuple(sorted(queues or config.queues)),
        slots=config.slots * config.processes,
        detail=msgspec.json.encode(detail),
        beat=span_of(config.beat_s),
        lease=span_of(config.lease_s),
    )


def _portrait(one: Incarnation) -> dict[str, object]:
    rows = one.rows()
    silent_ns = boot_ns() - one.board.ticked_ns if one.board.ticked_ns else 0
    return {
        "pid": one.pid,
        "memory": memory_of(one.pid),
        "held": len(rows),
        "started": sum(1 for row in rows if row.started_ns),
        "loop_silent_s": round(silent_ns / 1_000_000_000, 3),
    }


def memory_of(pid: int) -> int | None:
    """Resident bytes of a process; None where that cannot be read."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None
