"""How a member introduces itself with every heartbeat."""

import os
import socket
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version

import msgspec

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import show_id
from tidemill.model.member import Detail, MemberInfo, ProcessDetail, RunDetail
from tidemill.model.time import span_of
from tidemill.worker.config import WorkerConfig
from tidemill.worker.process.held_table import HeldRow, HeldTable

RUNS_SHOWN = 10
"""Of each process: the record is written with every heartbeat, so it must stay small."""

VERSION = version("tidemill")

_PAGE = os.sysconf("SC_PAGE_SIZE")


def member_info(
    member: bytes,
    config: WorkerConfig,
    boards: Sequence[tuple[int, HeldTable]],
    queues: Iterable[str] = (),
    schedules: Iterable[str] | None = None,
) -> MemberInfo:
    """The record of this member now. `boards`: of its processes, by process id; `queues` and `schedules`: as
    they say."""
    host, pid = socket.gethostname(), os.getpid()
    works = "worker" in config.roles
    detail = Detail(memory=memory_of(pid), processes=tuple(_portrait(*one) for one in boards))
    return MemberInfo(
        id=member,
        name=f"{host}:{pid}",
        host=host,
        pid=pid,
        version=VERSION,
        roles=config.roles,
        queues=tuple(sorted(set(queues) or config.queues)) if works else (),
        slots=config.slots * config.processes if works else 0,
        detail=msgspec.json.encode(detail),
        app=config.source if works else "",
        schedules=None if schedules is None else tuple(sorted(schedules)),
        heartbeat=span_of(config.heartbeat_s),
        lease=span_of(config.lease_s),
    )


def _portrait(pid: int, board: HeldTable) -> ProcessDetail:
    rows, now_ns = board.rows(), boot_ns()
    rows.sort(key=lambda row: row.started_ns or now_ns)
    return ProcessDetail(
        pid=pid,
        memory=memory_of(pid),
        held=len(rows),
        started=sum(1 for row in rows if row.started_ns),
        loop_silent_s=round(board.loop_silent_ns(time.monotonic_ns()) / 1e9, 3),
        runs=tuple(_run(row, now_ns) for row in rows[:RUNS_SHOWN]),
    )


def _run(row: HeldRow, now_ns: int) -> RunDetail:
    running_ns = max(0, now_ns - row.started_ns)
    return RunDetail(show_id(row.id), round(running_ns / 1e9, 3) if row.started_ns else None)


def memory_of(pid: int) -> int | None:
    """Resident bytes of a process; None where that cannot be read."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return None
