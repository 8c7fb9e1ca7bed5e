"""A connection to a server, used by one call at a time, that comes back by itself.

A call on it either is answered or raises: `EngineUnavailable` when the connection broke on the way, which
leaves open whether the call was applied. The next call connects again. While the server cannot be reached,
further tries wait for a moment that grows from 50 ms to 2 s with jitter, and calls in between fail at once.
Heartbeats wait for a quarter of a lease at most: a member that is silent for a lease after an outage loses
its jobs.
"""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from tidemill.engine.shared.calls.connecting import Connecting, StillConnecting
from tidemill.model.errors import EngineUnavailable, TidemillError
from tidemill.model.time import SECOND, Span

C = TypeVar("C")

BACKOFF_S = (0.05, 2.0)
SHORTEST_CALL_S = 1.0
"""What a call has at least after a connect that took long: else the connection would be for nothing."""
SHORTEST_PATIENCE_S = 1.0
"""A busy machine may take this long for a heartbeat, whatever the lease."""


def backoff_s(failures: int, most_s: float = BACKOFF_S[1]) -> float:
    """How long to wait after so many failures in a row, however many they are."""
    return min(most_s, BACKOFF_S[0] * float(2 ** min(failures, 10))) * random.uniform(0.5, 1.0)


class Reconnecting(ABC, Generic[C]):
    """One connection of the driver's kind `C`, and the calls that queue for it (`_turn`)."""

    def __init__(self, shown: object, call_timeout: float) -> None:
        self._shown = shown
        """The server, for people."""
        self._connection: C | None = None
        self._connecting: Connecting[C] = Connecting(self._open, self._drop)
        self._turn = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._longest_wait_s = BACKOFF_S[1]
        self._why = ""
        self.patience_s = call_timeout
        """How long a call may take, once there is a connection."""
        self.within_s: float | None = None
        """How long it may take with the connect that it needs, where that matters."""
        self.trips = 0
        """Round trips made so far, counted for tests."""

    @abstractmethod
    async def _open(self) -> C:
        """Connect, in the driver's way; raises its errors."""

    @abstractmethod
    async def _drop(self, connection: C) -> None:
        """End a connection at once, whatever state it is in."""

    async def _hang_up(self, connection: C) -> None:
        """End a connection in good order."""
        await self._drop(connection)

    @abstractmethod
    def _is_stale(self, connection: C) -> bool:
        """Whether it has ended while no call used it, or leads to a server that is no longer the right
        one."""

    @abstractmethod
    def _translated(self, error: Exception) -> TidemillError:
        """Our error for one of the driver's."""

    async def _before_connect(self) -> None:
        """A connect begins: what goes on may lead to a former server."""

    def _after_connect(self) -> None:
        """There is a connection; nothing was sent on it."""

    def hurry(self, lease: Span) -> None:
        """Give up a call, and the connect that it needs, while there is time for another within a lease. Do
        not wait longer for the next try either."""
        patience_s = max(SHORTEST_PATIENCE_S, lease / SECOND / 2)
        self.patience_s = self.within_s = min(self.patience_s, patience_s)
        self._longest_wait_s = min(self._longest_wait_s, lease / SECOND / 4)

    @property
    def busy(self) -> bool:
        """Whether a call would have to wait for another."""
        return self._turn.locked()

    async def close(self) -> None:
        """Wait for the call in progress, then hang up."""
        async with self._turn:
            await self._connecting.close()
            connection, self._connection = self._connection, None
            if connection is not None:
                await self._hang_up(connection)

    async def _ready(self) -> C:
        """A connection that can be used, as far as we know without sending anything."""
        if self._connection is not None and self._is_stale(self._connection):
            await self._let_go()  # no call used it and nothing was sent: no caller need know
        if self._connection is None:
            self._connection = await self._connect()
        return self._connection

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._drop(connection)

    def _left_s(self, begun: float) -> float:
        """How long a call may take for which a connection was requested at that moment."""
        if self.within_s is None:
            return self.patience_s
        left_s = begun + self.within_s - time.monotonic()
        return min(self.patience_s, max(left_s, SHORTEST_CALL_S))

    async def _connect(self) -> C:
        if time.monotonic() < self._not_before:
            raise EngineUnavailable(f"{self._why}; the next try comes in a moment")
        await self._before_connect()
        try:
            if self.within_s is None:
                connection = await self._open()
            else:
                connection = await self._connecting.within(self.within_s)
        except StillConnecting as error:
            raise EngineUnavailable(f"{self._shown} did not answer in {self.within_s:g} s") from error
        except Exception as error:
            self._not_before = time.monotonic() + backoff_s(self._failures, self._longest_wait_s)
            self._failures += 1
            ours = self._translated(error)
            self._why = str(ours)
            raise ours from error
        self._failures = 0
        self._after_connect()
        return connection
