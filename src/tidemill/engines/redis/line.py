"""A line: one connection to the server, used by one call at a time, that comes back by itself.

A call on a line either is answered or raises: `EngineUnavailable` when the connection broke on the way,
which leaves open whether the call was applied. Nothing is sent a second time by itself, except a script
that the server does not know (NOSCRIPT: it was restarted, or its scripts were flushed), of which nothing
was run. While the server cannot be reached, further tries wait for a moment that grows from 50 ms to 2 s
with jitter, and calls in between fail at once.

A peer that is gone without a word is noticed by the kernel's keep-alive within half a minute, so that an idle
line is found broken before it is needed.
"""

import asyncio
import random
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeout

from tidemill.engine.shared.connecting import Connecting, StillConnecting
from tidemill.engines.redis.copies import Argument, Copies, TooFewReplicas
from tidemill.engines.redis.errors import is_read_only, translate
from tidemill.engines.redis.place import Place
from tidemill.engines.redis.scripts import Script
from tidemill.model.errors import EngineUnavailable

CONNECT_S = 10.0
BACKOFF_S = (0.05, 2.0)
SHORTEST_CALL_S = 1.0
"""What a call has at least after a connect that took long: else the connection would be for nothing."""
KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}
"""Probes after 15 s of silence; what is not acknowledged for 20 s means that nobody is there."""

_KEPT_ALIVE: dict[str, Any] = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        getattr(socket, name): value for name, value in KEEP_ALIVE.items() if hasattr(socket, name)
    },
}


class Line:
    """One connection and the calls that queue for it."""

    def __init__(self, place: Place, purpose: str, abandon: Callable[[], None] = lambda: None) -> None:
        self._place = place
        self._purpose = purpose
        self._abandon = abandon
        """Called when the server turns out to be one that cannot be written to."""
        self._left = False
        self._connection: AbstractConnection | None = None
        self._connecting = Connecting(self._open, hang_up)
        self._turn = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self.copies: Copies | None = None
        """Who waits for replicas, where that is asked for."""
        self.patience_s = place.call_timeout
        """How long a call may take, once there is a connection."""
        self.within_s: float | None = None
        """How long it may take with the connect that it needs, where that matters."""
        self.trips = 0
        """Round trips made so far, counted for tests."""

    async def run(self, script: Script, arguments: Sequence[Argument], *, copied: bool = False) -> Any:
        """The answer of a script, in one round trip; two when the server did not know it. `copied`: once
        enough replicas have what it wrote, if this line is to wait for them."""
        key = self._place.prefix
        async with self._turn:
            try:
                return await self._ask("EVALSHA", script.sha, 1, key, *arguments, copied=copied)
            except NoScriptError:
                return await self._checked("EVAL", script.text, 1, key, *arguments, copied=copied)
            except ResponseError as error:
                raise translate(error, self._place) from error

    async def command(self, *parts: Argument) -> Any:
        """The answer of one command."""
        async with self._turn:
            return await self._checked(*parts)

    async def _checked(self, *parts: Argument, copied: bool = False) -> Any:
        try:
            return await self._ask(*parts, copied=copied)
        except ResponseError as error:
            raise translate(error, self._place) from error

    async def _ask(self, *parts: Argument, copied: bool = False) -> Any:
        begun = time.monotonic()
        connection = await self._ready()
        self.trips += 1
        try:
            async with asyncio.timeout(self._left_s(begun)):
                if copied and self.copies is not None:
                    return await self.copies.ask(connection, parts, self.patience_s)
                # hiredis packs an argument in 0.2 us, the driver's own code in 0.7
                packed = pack_command(parts)  # type: ignore[arg-type]  # it takes a tuple of any length
                await connection.send_packed_command(packed, check_health=False)
                return await connection.read_response()
        except ResponseError as error:  # the server's own words: the connection is as good as before
            if is_read_only(error):
                self._abandon()
            raise
        except TooFewReplicas:  # the connection is as good as before
            raise
        except asyncio.CancelledError:
            await self._let_go()
            raise
        except Exception as error:
            await self._let_go()
            raise translate(error, self._place, self.patience_s) from error

    def leave(self) -> None:
        """Dial again before the next call: behind the address there may be another server by now."""
        self._left = True

    async def close(self) -> None:
        """Wait for the call in progress, then hang up."""
        async with self._turn:
            await self._connecting.close()
            await self._let_go()

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await hang_up(connection)

    def _left_s(self, begun: float) -> float:
        """How long a call may take for which a connection was asked for at that moment."""
        if self.within_s is None:
            return self.patience_s
        left_s = begun + self.within_s - time.monotonic()
        return min(self.patience_s, max(left_s, SHORTEST_CALL_S))

    async def _ready(self) -> AbstractConnection:
        if self._connection is not None and (self._left or _ended(self._connection)):
            await self._let_go()  # while nobody used it: nothing was sent, so nobody need know
        if self._left:
            await self._connecting.close()
        self._left = False
        if self._connection is None:
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> AbstractConnection:
        if time.monotonic() < self._not_before:
            raise EngineUnavailable(f"{self._place} cannot be reached; the next try comes in a moment")
        try:
            if self.within_s is None:
                connection = await self._open()
            else:
                connection = await self._connecting.within(self.within_s)
        except StillConnecting as error:
            raise EngineUnavailable(f"{self._place} did not answer in {self.within_s:g} s") from error
        except Exception as error:
            self._not_before = time.monotonic() + backoff_s(self._failures)
            self._failures += 1
            raise translate(error, self._place) from error
        self._failures = 0
        return connection

    async def _open(self) -> AbstractConnection:
        return await open_connection(self._place, self._purpose)

    def adopt(self, connection: AbstractConnection) -> None:
        """Take over a connection that was opened to look at the place."""
        self._connection = connection


def backoff_s(failures: int) -> float:
    """How long to wait after so many failures in a row, however many they are."""
    low, high = BACKOFF_S
    return min(high, low * float(2 ** min(failures, 10))) * random.uniform(0.5, 1.0)


def _ended(connection: AbstractConnection) -> bool:
    """Whether the server has closed the connection. (The driver's own test takes a turn of the loop.)"""
    reader = connection._reader
    return reader is None or reader.at_eof() or reader.exception() is not None


async def hang_up(connection: AbstractConnection) -> None:
    """Close, whatever state the connection is in."""
    with suppress(Exception):
        await connection.disconnect(nowait=True)


async def open_connection(place: Place, purpose: str) -> AbstractConnection:
    """Connect. The driver must not repeat anything by itself: it cannot know what was applied."""
    options: dict[str, Any] = {
        "db": place.db,
        "username": place.user,
        "password": place.password,
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": None,
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        "health_check_interval": 0,
        "client_name": f"tidemill-{purpose}",
        "protocol": 2,
        "decode_responses": False,
    }
    connection: AbstractConnection
    if place.path is not None:
        connection = UnixDomainSocketConnection(path=place.path, **options)
    elif place.tls is not None:
        tls = {**place.tls, "ssl_check_hostname": place.tls.get("ssl_cert_reqs") != "none"}
        connection = SSLConnection(host=place.host, port=place.port, **{**_KEPT_ALIVE, **options, **tls})
    else:
        connection = Connection(host=place.host, port=place.port, **_KEPT_ALIVE, **options)
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.connect()  # type: ignore[no-untyped-call]
    except BaseException as error:
        await hang_up(connection)
        if isinstance(error, TimeoutError | RedisTimeout):
            hint = "" if place.tls is None else ": does it speak TLS on this port?"
            raise EngineUnavailable(f"{place} did not answer in {CONNECT_S:g} s{hint}") from error
        raise
    return connection
