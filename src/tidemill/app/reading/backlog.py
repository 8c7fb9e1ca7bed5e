"""Events on their way from the loop that receives them to the thread or loop that reads them.

Bounded: a reader that falls behind learns how many events it has missed.
"""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

from tidemill.engine.locked import locked
from tidemill.model.event import Event, Gap, Why

BACKLOG_LIMIT = 10_000
"""The most events that wait for their reader; what comes on top is dropped and counted."""


class Backlog:
    """Written on one loop, read by one thread or loop."""

    def __init__(self, limit: int = BACKLOG_LIMIT) -> None:
        self._limit = limit
        self._waiting: list[Event | Gap] = []
        self._missed: dict[Why, int | None] = {}
        """What did not fit: how many events, or None, by why they are missing."""
        self._lock = threading.RLock()
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        """For a thread that waits: at most a few, all but the first of them for nothing."""
        self._reader: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._ended = False
        self._error: BaseException | None = None

    def put(self, found: Iterable[Event | Gap]) -> None:
        """They have arrived."""
        locked(self._lock, lambda: self._put(found))

    def end(self, error: BaseException | None = None) -> None:
        """Nothing comes any more; because of this fault, if there was one."""
        locked(self._lock, lambda: self._end(error))

    def close(self) -> None:
        """The reader is done: what waits is dropped, and so is what still comes. From any thread."""
        locked(self._lock, self._close)

    def take(self) -> list[Event | Gap]:
        """Everything that waits, as soon as there is something; empty: the end."""
        while (taken := locked(self._lock, self._take_or_none)) is None:
            self._wake_ups.get()
        return taken

    async def atake(self) -> list[Event | Gap]:
        """`take` for a loop."""
        while True:
            arrived = asyncio.Event()
            if (taken := locked(self._lock, partial(self._take_or_wait, arrived))) is not None:
                return taken
            await arrived.wait()

    def _put(self, found: Iterable[Event | Gap]) -> None:
        if self._ended:  # closed by its reader: a batch may still be on its way
            return
        waiting = self._waiting
        for one in found:
            if len(waiting) < self._limit:
                if self._missed:
                    self._mark_missed()
                waiting.append(one)
            else:
                self._miss(one)
        if self._something():  # perhaps nothing of it was wanted
            self._wake()

    def _end(self, error: BaseException | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._wake()

    def _close(self) -> None:
        self._waiting, self._missed = [], {}
        self._ended, self._error = True, None
        self._wake()

    def _take_or_none(self) -> list[Event | Gap] | None:
        return self._take() if self._something() else None

    def _take_or_wait(self, arrived: asyncio.Event) -> list[Event | Gap] | None:
        if self._something():
            return self._take()
        self._reader = asyncio.get_running_loop(), arrived
        return None

    def _something(self) -> bool:
        return bool(self._waiting or self._missed or self._ended)

    def _take(self) -> list[Event | Gap]:
        if self._missed:
            self._mark_missed()
        if not self._waiting and self._error is not None:
            raise self._error
        taken, self._waiting, self._reader = self._waiting, [], None
        return taken

    def _miss(self, one: Event | Gap) -> None:
        """No room: events are counted, and gaps become one of their kind."""
        why, count = ("slow", 1) if isinstance(one, Event) else (one.why, one.missed)
        before = self._missed.get(why, 0)
        self._missed[why] = None if count is None or before is None else before + count

    def _mark_missed(self) -> None:
        self._waiting += [Gap(why, count) for why, count in self._missed.items()]
        self._missed = {}

    def _wake(self) -> None:
        if self._wake_ups.empty():
            self._wake_ups.put(None)
        if self._reader is not None:
            (loop, arrived), self._reader = self._reader, None
            with suppress(RuntimeError):  # the reader's loop was closed
                loop.call_soon_threadsafe(arrived.set)
