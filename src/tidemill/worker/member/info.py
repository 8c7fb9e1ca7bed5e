"""The record of a member that goes with every heartbeat."""

import os
import socket
import time
from collections.abc import Iterable, Sequence

import msgspec

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import show_id
from tidemill.model.member import Detail, MemberInfo, ProcessDetail, RunDetail, marks_of_tasks
from tidemill.model.time import span_of
from tidemill.model.version import __version__
from tidemill.worker.config import WorkerConfig
from tidemill.worker.process.held_table import HeldRow, HeldTable

RUNS_SHOWN = 10
"""How many runs are listed for each process: the record goes with every heartbeat, so it must stay small."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def member_info(
    member: bytes,
    config: WorkerConfig,
    held_tables: Sequence[tuple[int, HeldTable]],
    queues: Iterable[str] = (),
    schedules: Iterable[str] | None = None,
    declares: Iterable[str] | None = None,
    tasks: Iterable[str] | None = None,
    *,
    processes: int = 1,
) -> MemberInfo:
    """The record of this member now. `held_tables`: those of its processes, with the process ids. `queues`,
    `schedules`, `declares` and `tasks`: what its processes said when they were ready. `processes`: how many
    take jobs."""
    host, pid = socket.gethostname(), os.getpid()
    works = "worker" in config.roles
    detail = Detail(memory=memory_of(pid), processes=tuple(_process_detail(*one) for one in held_tables))
    return MemberInfo(
        id=member,
        name=f"{host}:{pid}",
        host=host,
        pid=pid,
        version=__version__,
        roles=config.roles,
        queues=tuple(sorted(set(queues) or config.queues)) if works else (),
        slots=config.slots * processes if works else 0,
        detail=msgspec.json.encode(detail),
        app=config.source if works else "",
        schedules=None if schedules is None else tuple(sorted(schedules)),
        declares=None if declares is None else tuple(sorted(declares)),
        tasks=None if tasks is None or not works else marks_of_tasks(tasks),
        heartbeat=span_of(config.heartbeat_s),
        lease=span_of(config.lease_s),
    )


def _process_detail(pid: int, held_table: HeldTable) -> ProcessDetail:
    rows, now_ns = held_table.rows(), boot_ns()
    rows.sort(key=lambda row: row.started_ns or now_ns)
    return ProcessDetail(
        pid=pid,
        memory=memory_of(pid),
        held=len(rows),
        started=sum(1 for row in rows if row.started_ns),
        loop_silent_s=round(held_table.loop_silent_ns(time.monotonic_ns()) / 1e9, 3),
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
