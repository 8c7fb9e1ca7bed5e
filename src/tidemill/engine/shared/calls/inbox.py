"""A subscription, whatever carries the signals: those of some topics, merged while they wait.

Signals alone are not enough where others write to a file without sending any, or where a server cannot be
listened to. There the engine passes `poll`: it is called once in `POLL_S`, and answers whether something may
have changed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tidemill.model.event import ANY_TOPIC, Signal

POLL_S = 1.0
PENDING_LIMIT = 1_000
"""The most signals that a slow subscriber keeps; beyond that it gets one `ANY_TOPIC`."""


class Inbox:
    """See `tidemill.engine.protocol.Subscription`. On the loop that made it."""

    def __init__(
        self,
        topics: tuple[str, ...],
        *,
        leave: Callable[["Inbox"], None],
        poll: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.topics = frozenset(topics)
        self.closed = False
        self._leave = leave
        self._poll = poll
        self._poll_at = self.loop.time() + POLL_S
        self._pending: dict[Signal, None] = {}
        self._arrived = asyncio.Event()

    def deliver(self, signal: Signal) -> None:
        """Take a signal that was received, if its topic is one of ours."""
        if signal.topic in self.topics or signal.topic == ANY_TOPIC:
            self._pending[signal if len(self._pending) < PENDING_LIMIT else Signal(ANY_TOPIC)] = None
            self._arrived.set()

    async def next(self, timeout: float | None = None) -> Signal | None:
        end = None if timeout is None else self.loop.time() + timeout
        while not self.closed:
            if self._pending:
                signal = next(iter(self._pending))
                del self._pending[signal]
                return signal
            if end is not None and self.loop.time() >= end:
                return None
            self._arrived.clear()
            try:
                # wait_for of Python 3.11 swallows a cancellation that comes together with the event
                async with asyncio.timeout_at(self._wake_at(end)):
                    await self._arrived.wait()
            except TimeoutError:
                if await self._poll_if_due():
                    return Signal(ANY_TOPIC)
        return None

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._leave(self)
            self._arrived.set()

    def _wake_at(self, end: float | None) -> float | None:
        if self._poll is None:
            return end
        return self._poll_at if end is None else min(end, self._poll_at)

    async def _poll_if_due(self) -> bool:
        """The poll has its own time: many short waits must not put it off for ever."""
        if self._poll is None or self.closed or self.loop.time() < self._poll_at:
            return False
        self._poll_at = self.loop.time() + POLL_S
        return await self._poll()
