"""Looking at processes."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 40.0
POLL_S = 0.01
SERVERS = ("postgres", "pgbouncer", "redis-server")
ENDED = (FileNotFoundError, ProcessLookupError)
"""What a file of /proc says that was there before its process or thread ended: on open, or on read."""


async def until(fact: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait for something that sends no signal: the state of a process or a file."""
    give_up_at = time.monotonic() + patience_s
    while not fact():
        assert time.monotonic() < give_up_at, "it did not happen"
        await asyncio.sleep(POLL_S)


def is_gone(pid: int) -> bool:
    """Whether a process has ended. Orphans may stay zombies where nobody adopts them: those have too."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ENDED:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def children_of(pid: int) -> list[int]:
    """Direct children, alive or not yet reaped; without the servers that a test process may have started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(*ENDED):
            found += [int(child) for child in (thread / "children").read_text().split()]
    return [child for child in found if _name(child) not in SERVERS]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except ENDED:  # reaped in this moment
        return ""


def descriptors_of(pid: int) -> int:
    """How many are open, without connections to the engine's server: those are opened when first used."""
    rows = [line.split() for net in ("tcp", "tcp6") for line in _lines(Path(f"/proc/{pid}/net/{net}"))]
    connections = {f"socket:[{row[9]}]" for row in rows}
    found = []
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(*ENDED):  # closed meanwhile
            found.append(os.readlink(one))
    return sum(one not in connections for one in found)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:] if path.exists() else []


def is_stopped(pid: int) -> bool:
    """By SIGSTOP; or it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
    except FileNotFoundError:
        return True


def memory_of(pid: int) -> int:
    """Resident bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_s(pid: int) -> float:
    """Processor time used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
