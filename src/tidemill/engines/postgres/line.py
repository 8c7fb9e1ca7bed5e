"""A line: one connection to the server, used by one call at a time, that comes back by itself.

A call on a line either is answered or raises: `EngineUnavailable` when the connection broke on the way, which
leaves open whether the call was applied. The next call connects again. While the server cannot be reached,
further tries wait for a moment that grows from 50 ms to 2 s with jitter, and calls in between fail at once.

A server that drops idle connections is not worth an error: a call that finds its connection ended, and so was
not even sent, is made once more by itself. So is one that the server refused because it is read-only now, and
one that only reads, however its connection broke. Others are repeated by whoever made them: only they know
what a second answer means.

A caller that is cancelled leaves its call running to its end: the connection is not torn down for it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tidemill.engine.shared.connecting import Connecting, StillConnecting
from tidemill.engines.postgres import dial as dialling
from tidemill.engines.postgres.dial import Dial
from tidemill.engines.postgres.errors import (
    is_broken,
    is_pooled,
    is_read_only,
    may_repeat,
    translate,
    was_idle,
)
from tidemill.model.errors import EngineUnavailable

T = TypeVar("T")

BACKOFF_S = (0.05, 2.0)
REPEATS = 5
"""How often a call is made again that the server undid because of others (a deadlock)."""

SHORTEST_CALL_S = 1.0
"""What a call has at least after a connect that took long: else the connection would be for nothing."""

Connection = dialling.Connection
Row = Sequence[Any]


class Line:
    """One connection and the calls that queue for it."""

    def __init__(self, dial: Dial, purpose: str, renewed: Callable[[], None] = lambda: None) -> None:
        """`renewed`: called with every connection but the first, before anything is sent on it."""
        self._dial = dial
        self._renewed = renewed
        self._connected = False
        self._place = dial.place
        self._purpose = purpose
        self._era = dial.era
        self._connection: Connection[Any] | None = None
        self._connecting = Connecting(self._open, _drop)
        self._turn = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._why = ""
        self.patience_s = dial.place.call_timeout
        """How long a call may take, once there is a connection."""
        self.within_s: float | None = None
        """How long it may take with the connect that it needs, where that matters."""
        self.trips = 0
        """Calls made so far, counted for tests."""

    @property
    def busy(self) -> bool:
        """Whether a call would have to wait for another."""
        return self._turn.locked()

    async def fetch(self, sql: str, *parameters: object, reads: bool = False) -> Sequence[Row]:
        """The rows of one statement, in one round trip."""

        async def work(connection: "Connection[Any]") -> Sequence[Row]:
            return await connection.fetch(sql, *parameters)

        return await self.use(work, reads=reads)

    async def row(self, sql: str, *parameters: object) -> Row:
        """The only row of one statement."""
        rows = await self.fetch(sql, *parameters)
        return rows[0]

    async def use(self, work: "Callable[[Connection[Any]], Awaitable[T]]", *, reads: bool = False) -> T:
        """Do something with the connection, alone."""
        async with self._turn:
            for attempt in range(REPEATS + 1):
                begun = time.monotonic()
                connection = await self._ready()
                self.trips += 1
                try:
                    async with asyncio.timeout(self._left_s(begun)):
                        return await work(connection)
                except asyncio.CancelledError:
                    connection.terminate()
                    raise
                except Exception as error:
                    self._draw_consequences(error, connection)
                    again = may_repeat(error) or (attempt == 0 and _is_worth_a_second_try(error, reads))
                    if not again or attempt == REPEATS or isinstance(error, TimeoutError):
                        raise translate(error, self._place, self.patience_s) from error
                    await asyncio.sleep(random.uniform(0, 0.01) * attempt)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Wait for the call in progress, then hang up."""
        async with self._turn:
            await self._connecting.close()
            if self._connection is not None and not self._connection.is_closed():
                with suppress(Exception):
                    await self._connection.close(timeout=2)
            self._connection = None

    def _left_s(self, begun: float) -> float:
        """How long a call may take for which a connection was asked for at that moment."""
        if self.within_s is None:
            return self.patience_s
        left_s = begun + self.within_s - time.monotonic()
        return min(self.patience_s, max(left_s, SHORTEST_CALL_S))

    async def _ready(self) -> "Connection[Any]":
        if self._connection is not None and self._era != self._dial.era:
            self._let_go()
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> "Connection[Any]":
        if time.monotonic() < self._not_before:
            raise EngineUnavailable(f"{self._why}; the next try comes in a moment")
        if self._era != self._dial.era:
            await self._connecting.close()  # it may lead to the former server
        self._era = self._dial.era
        try:
            if self.within_s is None:
                connection = await self._open()
            else:
                connection = await self._connecting.within(self.within_s)
        except StillConnecting as error:
            raise EngineUnavailable(f"{self._place} did not answer in {self.within_s:g} s") from error
        except Exception as error:
            low, high = BACKOFF_S
            wait = min(high, low * 2 ** min(self._failures, 10)) * random.uniform(0.5, 1.0)
            self._failures += 1
            self._not_before = time.monotonic() + wait
            ours = translate(error, self._place)
            self._why = str(ours)
            raise ours from error
        self._failures = 0
        if self._connected:
            self._renewed()
        self._connected = True
        return connection

    async def _open(self) -> "Connection[Any]":
        return await self._dial.open(self._purpose, self.within_s)

    def _draw_consequences(self, error: Exception, connection: "Connection[Any]") -> None:
        if is_read_only(error):
            self._dial.abandon(self._era)
        elif is_pooled(error):
            self._dial.found_pooler()
        if is_read_only(error) or is_pooled(error) or is_broken(error) or connection.is_closed():
            self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def adopt(self, connection: "Connection[Any]") -> None:
        """Take over a connection that was opened to look at the schema."""
        self._let_go()
        self._connection, self._era = connection, self._dial.era


async def _drop(connection: "Connection[Any]") -> None:
    connection.terminate()


def _is_worth_a_second_try(error: Exception, reads: bool) -> bool:
    """Whether the call was not applied, or does not care, and a new connection may do better."""
    return was_idle(error) or is_read_only(error) or (reads and is_broken(error))
