"""Events on their way from the loop that receives them to the thread or loop that reads them.

Bounded: a reader that falls behind learns how many events it has missed.
"""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress

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
        self._changed = threading.Condition()
        self._reader: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._ended = False
        self._error: BaseException | None = None

    def put(self, found: Iterable[Event | Gap]) -> None:
        """They have arrived."""
        with self._changed:
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

    def end(self, error: BaseException | None = None) -> None:
        """Nothing comes any more; because of this fault, if there was one."""
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
                self._wake()

    def close(self) -> None:
        """Nobody wants them any more: what waits is dropped, and so is what still comes. From any thread."""
        with self._changed:
            self._waiting, self._missed = [], {}
            self._ended, self._error = True, None
            self._wake()

    def take(self) -> list[Event | Gap]:
        """Everything that waits, as soon as there is something; empty: the end."""
        with self._changed:
            self._changed.wait_for(self._something)
            return self._take()

    async def atake(self) -> list[Event | Gap]:
        """`take` for a loop."""
        while True:
            arrived = asyncio.Event()
            with self._changed:
                if self._something():
                    return self._take()
                self._reader = asyncio.get_running_loop(), arrived
            await arrived.wait()

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
        self._changed.notify()
        if self._reader is not None:
            (loop, arrived), self._reader = self._reader, None
            with suppress(RuntimeError):  # the reader's loop was closed
                loop.call_soon_threadsafe(arrived.set)
