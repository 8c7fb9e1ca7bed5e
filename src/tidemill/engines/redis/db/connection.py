"""One connection to the server, for one call at a time, that comes back by itself: see
`engine.shared.reconnecting`.

Nothing is sent a second time by itself, except a script that the server does not know (NOSCRIPT: it was
restarted, or its scripts were flushed), of which nothing was run.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoScriptError, ResponseError

from tidemill.engine.shared.calls.reconnecting import Reconnecting
from tidemill.engines.redis.db.connect import hang_up, open_connection
from tidemill.engines.redis.db.copies import Argument, Copies, TooFewReplicas
from tidemill.engines.redis.db.errors import is_read_only, translate
from tidemill.engines.redis.db.scripts import LuaScript
from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import TidemillError


class RedisConnection(Reconnecting[AbstractConnection]):
    """One connection and the calls that queue for it."""

    def __init__(self, url: RedisUrl, purpose: str, abandon: Callable[[], None] = lambda: None) -> None:
        super().__init__(url, url.call_timeout)
        self._url = url
        self._purpose = purpose
        self._abandon = abandon
        """Called when the server turns out to be one that cannot be written to."""
        self._left = False
        self.copies: Copies | None = None
        """Waits for replicas, if the URL wants that."""

    async def run(self, script: LuaScript, arguments: Sequence[Argument], *, copied: bool = False) -> Any:
        """The answer of a script, in one round trip; two when the server did not know it. `copied`: once
        enough replicas have what it wrote, if this connection is to wait for them."""
        key = self._url.prefix
        async with self._turn:
            try:
                return await self._request("EVALSHA", script.sha, 1, key, *arguments, copied=copied)
            except NoScriptError:
                return await self._checked("EVAL", script.text, 1, key, *arguments, copied=copied)
            except ResponseError as error:
                raise translate(error, self._url) from error

    async def command(self, *parts: Argument) -> Any:
        """The answer of one command."""
        async with self._turn:
            return await self._checked(*parts)

    async def _checked(self, *parts: Argument, copied: bool = False) -> Any:
        try:
            return await self._request(*parts, copied=copied)
        except ResponseError as error:
            raise translate(error, self._url) from error

    async def _request(self, *parts: Argument, copied: bool = False) -> Any:
        begun = time.monotonic()
        connection = await self._ready()
        self.trips += 1
        try:
            async with asyncio.timeout(self._left_s(begun)):
                if copied and self.copies is not None:
                    return await self.copies.request(connection, parts, self.patience_s)
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
            raise translate(error, self._url, self.patience_s) from error

    def leave(self) -> None:
        """Connect again before the next call: behind the address there may be another server by now."""
        self._left = True

    def adopt(self, connection: AbstractConnection) -> None:
        """Take over a connection that was opened to check the server."""
        self._connection = connection

    async def _open(self) -> AbstractConnection:
        return await open_connection(self._url, self._purpose)

    async def _drop(self, connection: AbstractConnection) -> None:
        await hang_up(connection)

    def _is_stale(self, connection: AbstractConnection) -> bool:
        return self._left or _ended(connection)

    def _translated(self, error: Exception) -> TidemillError:
        return translate(error, self._url)

    async def _before_connect(self) -> None:
        if self._left:
            await self._connecting.close()
        self._left = False


def _ended(connection: AbstractConnection) -> bool:
    """Whether the server has closed the connection. (The driver's own test takes a turn of the loop.)"""
    reader = connection._reader
    return reader is None or reader.at_eof() or reader.exception() is not None
