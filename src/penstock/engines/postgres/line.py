"""A line: one connection to the server, used by one call at a time, that comes back by itself.

A call on a line either is answered or raises: `EngineUnavailable` when the connection broke on the way, which
leaves open whether the call was applied. The next call connects again. While the server cannot be reached,
further tries wait for a moment that grows from 50 ms to 2 s with jitter, and calls in between fail at once.

A caller that is cancelled leaves its call running to its end: the connection is not torn down for it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import asyncpg

from penstock.engines.postgres.errors import may_repeat, translate
from penstock.engines.postgres.place import Place
from penstock.model.errors import EngineUnavailable

T = TypeVar("T")

CONNECT_S = 10.0
BACKOFF_S = (0.05, 2.0)
REPEATS = 5
"""How often a call is made again that the server undid because of others (a deadlock)."""

Connection = asyncpg.Connection
Row = Sequence[Any]


class Line:
    """One connection and the calls that queue for it."""

    def __init__(self, place: Place, purpose: str) -> None:
        self._place = place
        self._purpose = purpose
        self._connection: Connection[Any] | None = None
        self._turn = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self.trips = 0
        """Calls made so far, counted for tests."""

    @property
    def busy(self) -> bool:
        """Whether a call would have to wait for another."""
        return self._turn.locked()

    async def fetch(self, sql: str, *parameters: object) -> Sequence[Row]:
        """The rows of one statement, in one round trip."""

        async def work(connection: "Connection[Any]") -> Sequence[Row]:
            return await connection.fetch(sql, *parameters)

        return await self.use(work)

    async def row(self, sql: str, *parameters: object) -> Row:
        """The only row of one statement."""
        rows = await self.fetch(sql, *parameters)
        return rows[0]

    async def use(self, work: "Callable[[Connection[Any]], Awaitable[T]]") -> T:
        """Do something with the connection, alone."""
        async with self._turn:
            for attempt in range(REPEATS + 1):
                connection = await self._ready()
                self.trips += 1
                try:
                    async with asyncio.timeout(self._place.call_timeout):
                        return await work(connection)
                except asyncio.CancelledError:
                    connection.terminate()
                    raise
                except Exception as error:
                    if may_repeat(error) and attempt < REPEATS:
                        await asyncio.sleep(random.uniform(0, 0.01) * (attempt + 1))
                        continue
                    if not isinstance(error, asyncpg.PostgresError) or connection.is_closed():
                        self._let_go_if_broken(error)
                    raise translate(error, self._place) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Wait for the call in progress, then hang up."""
        async with self._turn:
            if self._connection is not None and not self._connection.is_closed():
                with suppress(Exception):
                    await self._connection.close(timeout=2)
            self._connection = None

    async def _ready(self) -> "Connection[Any]":
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> "Connection[Any]":
        if time.monotonic() < self._not_before:
            raise EngineUnavailable(f"{self._place} cannot be reached; the next try comes in a moment")
        try:
            connection = await open_connection(self._place, self._purpose)
        except Exception as error:
            low, high = BACKOFF_S
            wait = min(high, low * 2**self._failures) * random.uniform(0.5, 1.0)
            self._failures += 1
            self._not_before = time.monotonic() + wait
            raise translate(error, self._place) from error
        self._failures = 0
        return connection

    def _let_go_if_broken(self, error: Exception) -> None:
        """An error of our own making (a value that does not fit) leaves the connection as it is."""
        connection = self._connection
        bad_value = isinstance(error, asyncpg.exceptions.DataError | OverflowError | UnicodeError | TypeError)
        if connection is not None and not (bad_value and not connection.is_closed()):
            connection.terminate()
            self._connection = None

    def adopt(self, connection: "Connection[Any]") -> None:
        """Take over a connection that was opened to look at the schema."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = connection


async def open_connection(place: Place, purpose: str) -> "Connection[Any]":
    """Connect. Nothing else is set in the session: PgBouncer would lose it, or refuse the connection."""
    settings = {"application_name": f"penstock {purpose}"}
    if place.durability == "off":
        settings["synchronous_commit"] = "off"
    return await asyncpg.connect(
        place.dsn,
        timeout=CONNECT_S,
        statement_cache_size=200 if place.prepared else 0,
        max_cached_statement_lifetime=0,
        server_settings=settings,
    )
