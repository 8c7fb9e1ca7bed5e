"""The held table: what a worker process holds, readable even while that process cannot answer.

A task may hold the GIL, block the loop or kill its process. The supervisor must know all the same which runs
the process has (so that a heartbeat can say "held"), which of them had really started (so that a crash is
blamed on the right ones), and which are past their deadline. So the process keeps that in a page of shared
memory, and the supervisor reads it there.

**One writer a cell.** The worker process writes the rows, `answered_through`, its count, and when its loop
will answer. The supervisor writes only `heartbeat_answered`. Cells are aligned 64-bit integers, written in
one piece. Nothing is locked, because a lock held by a dead process would be worse than any race here.

**The order of writes is the protocol.** A row exists while its fence is not 0. `hold` writes the fence last,
`let_go` clears it first, and a reader reads it again after the rest. So a reader never sees half of one run
and half of another (fences are never used twice). `start` writes the moment last in the same way. `answered`
is written after all jobs of a claim are held, and `heartbeat` reads it *before* the fences: it can then name
a claim's number to the engine only if that claim's jobs are in the held table, settled, or released. The
other way round a heartbeat could release a job that was just claimed.

**After a death** the memory stays as it was at the last instruction. The supervisor reads it then.

Times are nanoseconds of the boot clock, which is the same in all processes and goes on in a suspend. Only
`loop_answers_by` uses the monotonic clock, which does not.
A hold, a start and a let-go together cost 0.6 microseconds.
"""

import mmap
import os
import struct
from typing import NamedTuple

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat
from tidemill.model.time import Span

NO_RETRY = -1
"""In `retry_in`: the run's failure would be the last."""

_CELL = 8
_HEADER_CELLS, _ROW_CELLS = 16, 8
# `_HEARTBEAT` is the supervisor's cell: it lies on a cache line of its own.
_ANSWERED, _ANSWERS_BY, _FINISHED, _HEARTBEAT = 0, 1, 2, 8
_STARTED, _DEADLINE, _RETRY_IN = 1, 2, 3  # in a row; its fence comes first, its id last
_FILL = struct.Struct("qqq16s")  # a row without its fence: native order, so that cells are written whole


class HeldTableFull(RuntimeError):
    """More was claimed than there are rows: a mistake in this program."""


class HeldRow(NamedTuple):
    """One run that a worker process has."""

    fence: Fence
    id: JobId
    started_ns: int
    """0: waits, runs in a process of its own, or has ended and is not settled yet."""
    deadline_ns: int
    """0: none."""
    retry_in: Span
    """What a timeout means: tried again after this, or `NO_RETRY`."""


class HeldTable:
    """The table of one worker process. Made by the supervisor, attached by the process."""

    def __init__(self, fd: int, capacity: int) -> None:
        self.fd = fd
        self.capacity = capacity
        self._memory = mmap.mmap(fd, _size(capacity))
        self._bytes = memoryview(self._memory)
        self._cells = self._bytes.cast("q")
        self._fences = self._cells[_HEADER_CELLS::_ROW_CELLS]
        self._rows = range(_HEADER_CELLS, _HEADER_CELLS + capacity * _ROW_CELLS, _ROW_CELLS)
        self._free = list(reversed(self._rows))

    @classmethod
    def create(cls, capacity: int) -> "HeldTable":
        """A new, empty one. Its `fd` can be given to another process."""
        fd = _shared_memory()
        os.ftruncate(fd, _size(capacity))
        return cls(fd, capacity)

    @classmethod
    def attach(cls, fd: int, capacity: int) -> "HeldTable":
        """The one that another process made. Only one process at a time may hold and let go."""
        if os.fstat(fd).st_size != _size(capacity):
            raise ValueError(f"descriptor {fd} is not a held table of {capacity} rows")
        return cls(fd, capacity)

    def close(self) -> None:
        """Let go of the memory and the descriptor."""
        for view in (self._fences, self._cells, self._bytes):
            view.release()
        self._memory.close()
        os.close(self.fd)

    # For the worker process

    def hold(self, job_id: JobId, fence: Fence) -> int:
        """A claimed job is ours: its row, a number that means nothing to others."""
        if not self._free:
            raise HeldTableFull(f"all {self.capacity} rows are taken")
        row = self._free.pop()
        _FILL.pack_into(self._bytes, (row + _STARTED) * _CELL, 0, 0, NO_RETRY, job_id)
        self._cells[row] = fence
        return row

    def start(self, row: int, *, started_ns: int, deadline_ns: int, retry_in: Span) -> None:
        """It begins to run in this process."""
        cells = self._cells
        cells[row + _DEADLINE] = deadline_ns
        cells[row + _RETRY_IN] = retry_in
        cells[row + _STARTED] = started_ns

    def ended(self, row: int) -> None:
        """Its code has ended. The run is held until that is settled. It can neither be stuck nor kill us."""
        self._cells[row + _STARTED] = 0

    def let_go(self, row: int) -> None:
        """Its settle or release was answered, whatever the answer."""
        self._cells[row] = 0
        self._free.append(row)

    def answered(self, number: int) -> None:
        """The answer to this claim has come, and all its jobs are held."""
        self._cells[_ANSWERED] = number

    def count(self, finished: int) -> None:
        """So many more outcomes were recorded."""
        self._cells[_FINISHED] += finished

    def free(self) -> int:
        """How many more can be held."""
        return len(self._free)

    def loop_answers_by(self, ns: int) -> None:
        """The loop has answered, and the next question comes at this moment (monotonic); 0: no more
        questions."""
        self._cells[_ANSWERS_BY] = ns

    @property
    def heartbeat_ns(self) -> int:
        """When the supervisor's last good heartbeat was sent; 0: none yet."""
        return self._cells[_HEARTBEAT]

    # For the supervisor

    def loop_silent_ns(self, now_ns: int) -> int:
        """How long the process's loop owes an answer, at this moment of the monotonic clock."""
        answers_by = self._cells[_ANSWERS_BY]
        return max(0, now_ns - answers_by) if answers_by else 0

    @property
    def finished(self) -> int:
        """How many outcomes of the process were recorded since it began."""
        return self._cells[_FINISHED]

    def heartbeat_answered(self, ns: int) -> None:
        """A heartbeat that was sent at this moment has been answered."""
        self._cells[_HEARTBEAT] = ns

    def heartbeat(self, claimant: bytes) -> ClaimantHeartbeat:
        """What a heartbeat says of this process."""
        answered_through = self._cells[_ANSWERED]  # before the fences: see above
        held = tuple(fence for fence in self._fences.tolist() if fence)
        return ClaimantHeartbeat(claimant=claimant, answered_through=answered_through, held=held)

    def held(self) -> int:
        """How many runs it has."""
        return sum(1 for fence in self._fences.tolist() if fence)

    def rows(self) -> list[HeldRow]:
        """Every run that it has."""
        fences = zip(self._rows, self._fences.tolist(), strict=True)
        return [found for row, fence in fences if fence and (found := self._row(row))]

    def _row(self, row: int) -> HeldRow | None:
        """None: it was let go while we read."""
        fence = self._cells[row]
        started_ns, deadline_ns, retry_in, job_id = _FILL.unpack_from(self._bytes, (row + _STARTED) * _CELL)
        if not fence or self._cells[row] != fence:
            return None
        return HeldRow(fence, job_id, started_ns, deadline_ns, retry_in)


def _size(capacity: int) -> int:
    return (_HEADER_CELLS + capacity * _ROW_CELLS) * _CELL


def _shared_memory() -> int:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tidemill-held")
    import tempfile  # 4 ms of the start of every process

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
