"""A wall clock that is wrong: in the processes of one member, as far as Python code asks for it.

(A library that shifts the clock of a whole process was tried: libfaketime 0.9.10 breaks `time.sleep`.) The
runner says in a file by how much; monotonic clocks stay as they are.
"""

import os
import time
from pathlib import Path

from tests.chaos.swap import swap

VARIABLE = "CHAOS_CLOCK"
"""Names the file."""


class ShiftedClock:
    """`time.time` and `time.time_ns`, plus so many seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._right, self._right_ns = time.time, time.time_ns
        self._read: int | None = None
        self._offset_s = 0

    def time(self) -> float:
        return self._right() + self._offset()

    def time_ns(self) -> int:
        return self._right_ns() + self._offset() * 1_000_000_000

    def _offset(self) -> int:
        changed = self._path.stat().st_mtime_ns
        if changed != self._read:
            self._offset_s = int(self._path.read_text() or self._offset_s)
            self._read = changed
        return self._offset_s


def shift_from_environment() -> None:
    """In a process of a run."""
    path = os.environ.get(VARIABLE)
    if path:
        clock = ShiftedClock(Path(path))
        swap(time, "time", clock.time)
        swap(time, "time_ns", clock.time_ns)
