"""One connection to the server, for one call at a time, that comes back by itself: see
`engine.shared.reconnecting`.

A server that drops idle connections is not worth an error: a call that finds its connection ended, and so was
not even sent, is made once more by itself. So is one that the server refused because it is read-only now, and
one that only reads, however its connection broke. Others are repeated by their callers: only a caller
knows what a second answer means.

A caller that is cancelled leaves its call running to its end: the connection is not torn down for it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tidemill.engine.shared.calls.reconnecting import Reconnecting
from tidemill.engines.postgres.db.connect import Connection, PostgresConnector
from tidemill.engines.postgres.db.errors import (
    is_broken,
    is_pooled,
    is_read_only,
    may_repeat,
    translate,
    was_idle,
)
from tidemill.model.errors import TidemillError

T = TypeVar("T")

REPEATS = 5
"""How often a call is made again that the server undid because of others (a deadlock)."""

Row = Sequence[Any]


class PostgresConnection(Reconnecting["Connection[Any]"]):
    """One connection and the calls that queue for it."""

    def __init__(
        self, connector: PostgresConnector, purpose: str, renewed: Callable[[], None] = lambda: None
    ) -> None:
        """`renewed`: called with every connection but the first, before anything is sent on it."""
        super().__init__(connector.url, connector.url.call_timeout)
        self._connector = connector
        self._renewed = renewed
        self._connected = False
        self._url = connector.url
        self._purpose = purpose
        self._era = connector.era

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
                    await self._let_go()
                    raise
                except Exception as error:
                    await self._draw_consequences(error, connection)
                    again = may_repeat(error) or (attempt == 0 and _is_worth_a_second_try(error, reads))
                    if not again or attempt == REPEATS or isinstance(error, TimeoutError):
                        raise translate(error, self._url, self.patience_s) from error
                    await asyncio.sleep(random.uniform(0, 0.01) * attempt)
        raise AssertionError("unreachable")

    def adopt(self, connection: "Connection[Any]") -> None:
        """Take over a connection that was opened to check the schema."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection, self._era = connection, self._connector.era

    async def _open(self) -> "Connection[Any]":
        return await self._connector.open(self._purpose, self.within_s)

    async def _drop(self, connection: "Connection[Any]") -> None:
        connection.terminate()

    async def _hang_up(self, connection: "Connection[Any]") -> None:
        if not connection.is_closed():
            with suppress(Exception):
                await connection.close(timeout=2)

    def _is_stale(self, connection: "Connection[Any]") -> bool:
        return self._era != self._connector.era or connection.is_closed()

    def _translated(self, error: Exception) -> TidemillError:
        return translate(error, self._url)

    async def _before_connect(self) -> None:
        if self._era != self._connector.era:
            await self._connecting.close()  # it may lead to the former server
        self._era = self._connector.era

    def _after_connect(self) -> None:
        if self._connected:
            self._renewed()
        self._connected = True

    async def _draw_consequences(self, error: Exception, connection: "Connection[Any]") -> None:
        if is_read_only(error):
            self._connector.abandon(self._era)
        elif is_pooled(error):
            self._connector.found_pooler()
        if is_read_only(error) or is_pooled(error) or is_broken(error) or connection.is_closed():
            await self._let_go()


def _is_worth_a_second_try(error: Exception, reads: bool) -> bool:
    """Whether the call was not applied, or does not care, and a new connection may do better."""
    return was_idle(error) or is_read_only(error) or (reads and is_broken(error))
