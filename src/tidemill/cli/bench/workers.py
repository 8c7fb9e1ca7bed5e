"""A real worker, started for a measurement: what it costs is read from the kernel's books.

As in the demo, it is a process group of its own that the kernel ends when we are gone."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from tidemill.cli.program import refuse
from tidemill.engine.protocol import Engine
from tidemill.model.queues.layers import Declaration, fields_of
from tidemill.model.queues.queue import Keep, QueueOptions

APP = "tidemill.cli.bench.app:app"
READY_S = 30.0
KEPT = Keep(age=86_400.0, count=1_000_000)
"""Whatever an engine keeps by itself: the records of a turn are read after it."""
STOP_S = 30.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


async def declare(engine: Engine, queue: str, options: QueueOptions) -> None:
    """Give a queue these options; a later call replaces them."""
    await engine.queues.declare("bench", {queue: Declaration(fields=fields_of(options))})


class BenchWorkers:
    """A supervisor and its worker processes, at work on a queue of their own."""

    def __init__(self, queue: str, supervisor: int) -> None:
        self.queue = queue
        self._supervisor = supervisor

    def cpu_s(self) -> float:
        """Processor time of all its processes so far."""
        return sum(_cpu_ticks(pid) for pid in self._processes()) / _TICKS_A_SECOND

    def worker_memory_mb(self) -> float:
        """Resident memory of its largest worker process."""
        return max(_resident(pid) for pid in _children(self._supervisor)) / 1e6

    def memory_mb(self) -> float:
        """Resident memory of all its processes: pages that they share count for each."""
        return sum(_resident(pid) for pid in self._processes()) / 1e6

    def _processes(self) -> Iterator[int]:
        waiting = [self._supervisor]
        while waiting:
            pid = waiting.pop()
            yield pid
            waiting += _children(pid)


@asynccontextmanager
async def start_workers(
    engine: Engine, queue: str, *, processes: int = 1, slots: int | None = None
) -> AsyncIterator[BenchWorkers]:
    """Start a worker on a queue and wait until it claims."""
    from tidemill.cli.bench.app import app  # here: it reads settings that callers make first

    app.queue(queue)  # else each name gets a warning that it may be misspelt
    await declare(engine, queue, QueueOptions(keep_completed=KEPT))
    parent_pipe, ours = os.pipe()
    options = ["-p", str(processes), "-q", queue, "--parent-pipe", str(parent_pipe)]
    if slots is not None:
        options += ["-c", str(slots)]
    command = (sys.executable, "-m", "tidemill", "worker", APP, *options)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=(parent_pipe,),
    )
    os.close(parent_pipe)
    reader: asyncio.Task[None] | None = None
    try:
        said = await _until_ready(process, processes)
        reader = asyncio.create_task(_read_on(process))
        if said is not None:
            raise refuse(f"the worker did not start: {said}")
        yield BenchWorkers(queue, process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()
        if reader is not None:
            await reader
        os.close(ours)


async def _until_ready(process: asyncio.subprocess.Process, processes: int) -> str | None:
    """None once every worker process is ready; else the last thing that it said."""
    assert process.stderr is not None
    last, ready = "nothing was said", 0
    try:
        async with asyncio.timeout(READY_S):
            while ready < processes:
                line = await process.stderr.readline()
                if not line:
                    return last
                last = line.decode(errors="replace").strip()
                ready += "is ready" in last
    except TimeoutError:
        return f"after {READY_S:g} s it was not ready; its last words: {last}"
    return None


async def _read_on(process: asyncio.subprocess.Process) -> None:
    """The rest of its log is not used, but a full pipe would stop it."""
    assert process.stderr is not None
    while await process.stderr.read(1 << 16):
        pass


def cpu_s_of(pid: int, *, with_ended_children: bool = False) -> float:
    """Processor time of one process so far; 0 if it is gone."""
    return _cpu_ticks(pid, 4 if with_ended_children else 2) / _TICKS_A_SECOND


def _stat(pid: int) -> list[str]:
    """The fields after the name, from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _cpu_ticks(pid: int, counters: int = 2) -> int:
    """In user and system mode; with 4 counters also of children that have ended and been waited for."""
    fields = _stat(pid)
    return sum(map(int, fields[11 : 11 + counters])) if fields else 0


def _resident(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
