"""What jobs leave behind of themselves, for the benchmark to read: standard library alone, in every peer's
environment.

A no-op adds to a page of 32 bytes that its process shares with the benchmark: turn, jobs, first start,
last end (nanoseconds of the clock that all processes of a machine share). It costs less than a
microsecond. The other tasks append a line to a file: what happened, to which job, when."""

import mmap
import os
import struct
import threading
import time

PAGE = struct.Struct("<4Q")
SLOW_S = 2.0


class _Process:
    """The files of one process; a forked child opens its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.page: mmap.mmap | None = None
        self.events = -1
        self.turn = self.jobs = self.first = 0

    def open(self, kind: str) -> int:
        path = os.path.join(os.environ["BENCH_LEDGER"], f"{kind}-{os.getpid()}")
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)


_process = _Process()


def _forget() -> None:
    global _process  # noqa: PLW0603
    _process = _Process()


os.register_at_fork(after_in_child=_forget)


def noop(turn: int) -> None:
    """A job of this turn ran."""
    now, process = time.monotonic_ns(), _process
    with process.lock:
        if process.page is None:
            file = process.open("tally")
            os.ftruncate(file, PAGE.size)
            process.page = mmap.mmap(file, PAGE.size)
            os.close(file)
        if turn != process.turn:
            process.turn, process.jobs, process.first = turn, 0, now
        process.jobs += 1
        PAGE.pack_into(process.page, 0, turn, process.jobs, process.first, now)


def event(what: str, job: int) -> None:
    """Something happened to a job."""
    line = f"{what} {job} {time.monotonic_ns()}\n".encode()
    with _process.lock:
        if _process.events < 0:
            _process.events = _process.open("events")
    os.write(_process.events, line)
