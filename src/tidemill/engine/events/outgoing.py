"""Changes that wait to be emitted: handed over by any thread, taken by the emitter, bounded."""

import threading
from typing import NamedTuple

from tidemill.engine.events.changes import Change, Changes, Missed
from tidemill.engine.locked import locked

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
        self._lock = threading.RLock()
        self._waiting: list[CallChanges] = []
        self._size = 0
        self._dropped = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, at: float, changes: Changes) -> int:
        """How many were dropped because there is no room."""
        size = sum(len(change.ids) if isinstance(change, Change) else 1 for change in changes)
        return locked(self._lock, lambda: self._add(CallChanges(at, changes, size)))

    def _add(self, call: CallChanges) -> int:
        if call.changes == _UNKNOWN and self._waiting and self._waiting[-1].changes == _UNKNOWN:
            return 0  # while the engine is out of reach, one gap says it
        if self._size + call.size > self._limit:
            self._dropped += call.size
            return call.size
        if call.size:
            self._size += call.size
            self._waiting.append(call)
        return 0

    def take(self) -> tuple[list[CallChanges], int]:
        """Everything that waits, and how many were dropped after it."""
        return locked(self._lock, self._take)

    def _take(self) -> tuple[list[CallChanges], int]:
        taken, dropped = self._waiting, self._dropped
        self._waiting, self._size, self._dropped = [], 0, 0
        return taken, dropped
