"""Changes that wait to be emitted: handed over by any thread, taken by the emitter, bounded."""

import threading
from typing import NamedTuple

from tidemill.engine.events.changes import Change, Changes, Missed

_UNKNOWN: Changes = [Missed(None)]


class CallChanges(NamedTuple):
    """What one call changed."""

    at: float
    """When, on our monotonic clock."""
    changes: Changes
    size: int
    """How many events that makes."""


class Outgoing:
    """At most `limit` events; of what comes on top only the number is kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: list[CallChanges] = []
        self._size = 0
        self._dropped = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, at: float, changes: Changes) -> int:
        """How many were dropped because there is no room."""
        size = sum(len(change.ids) if isinstance(change, Change) else 1 for change in changes)
        with self._lock:
            if changes == _UNKNOWN and self._waiting and self._waiting[-1].changes == _UNKNOWN:
                return 0  # while the engine is out of reach, one gap says it
            if self._size + size > self._limit:
                self._dropped += size
                return size
            if size:
                self._size += size
                self._waiting.append(CallChanges(at, changes, size))
        return 0

    def take(self) -> tuple[list[CallChanges], int]:
        """Everything that waits, and how many were dropped after it."""
        with self._lock:
            taken, dropped = self._waiting, self._dropped
            self._waiting, self._size, self._dropped = [], 0, 0
        return taken, dropped
