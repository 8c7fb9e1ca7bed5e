"""Empty databases with our schema, quickly: made once from a template, emptied and used again."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from tests.servers.kept_backends import KeptBackends
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import DEFAULT_NAMESPACE, connect

T = TypeVar("T")

TEMPLATE = "tidemill_template"
_EMPTY = f"""
DO $$
DECLARE
    t regclass;
BEGIN
    FOR t IN SELECT oid FROM pg_class
             WHERE relnamespace = '{DEFAULT_NAMESPACE}'::regnamespace AND relkind = 'r'
             AND relname <> 'meta' LOOP
        EXECUTE 'DELETE FROM ' || t;
    END LOOP;
END $$
"""
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Loop:
    """An event loop in a thread of its own: connections for code that is not async, or has another loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="test-connections", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        if not self._thread.is_alive():  # else it ends with the process: it is a daemon
            self._loop.close()


class PostgresUrls:
    """The databases of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.loop = Loop()
        self._kept = KeptBackends(server.port)
        self._free: dict[bool, list[str]] = {True: [], False: []}  # whether backends are kept there
        self._used: dict[bool, list[str]] = {True: [], False: []}
        self._numbers = count(1)
        self._connections: dict[str, asyncpg.Connection[Any]] = {}
        self.loop.run(self._prepare())

    def fresh(self) -> str:
        """The URL of an empty database."""
        return self.server.url(self.loop.run(self._take(kept=False)))

    def fresh_kept(self) -> str:
        """The same for tests that do not inspect the server: backends outlive their clients there, unseen."""
        url = self.server.url(self.loop.run(self._take(kept=True)))
        return url.replace(f":{self.server.port}/", f":{self._kept.port}/")

    def release(self) -> None:
        """What was handed out is no longer in use."""
        for kept, names in self._used.items():
            self._free[kept] += names
            names.clear()

    @contextmanager
    def outage(self, url: str) -> Iterator[None]:
        """Nobody gets in, and whoever was in is thrown out, while it lasts."""
        name = urlsplit(url).path.removeprefix("/")
        if (own := self._connections.pop(name, None)) is not None:
            self.loop.run(own.close())
        self.loop.run(self._execute("postgres", f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"))
        leave = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        self.loop.run(self._execute("postgres", leave))
        yield
        self.loop.run(self._execute("postgres", f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true"))

    def close(self) -> None:
        self.loop.run(self._kept.close())
        self.loop.run(self._hang_up())
        self.loop.close()
        self.server.close()

    async def _prepare(self) -> None:
        await self._execute("postgres", f"CREATE DATABASE {TEMPLATE}")
        engine = await connect(self.server.url(TEMPLATE))
        await engine.close()
        await self._kept.start()

    async def _take(self, *, kept: bool) -> str:
        for names in (self._free[kept], self._used[kept]):
            for name in list(names):
                connection = await self._connection(name)
                if await connection.fetchval(_OTHERS) == self._kept.without_client(name):
                    names.remove(name)
                    await connection.execute(_EMPTY)
                    self._used[kept].append(name)
                    return name
        name = f"database_{next(self._numbers)}"
        await self._execute("postgres", f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        await self._connection(name)
        self._used[kept].append(name)
        return name

    async def _connection(self, database: str) -> "asyncpg.Connection[Any]":
        connection = self._connections.get(database)
        if connection is None or connection.is_closed():
            connection = await asyncpg.connect(self.server.url(database))
            self._connections[database] = connection
        return connection

    async def _execute(self, database: str, sql: str) -> None:
        await (await self._connection(database)).execute(sql)

    async def _hang_up(self) -> None:
        for connection in self._connections.values():
            await connection.close()


class PostgresUser:
    """A user's own connection, in a transaction of its own. See `contract.fixtures.UserConnection`."""

    def __init__(self, loop: Loop, url: str) -> None:
        self._loop = loop
        self._connection = loop.run(self._open(url))

    async def _open(self, url: str) -> "asyncpg.Connection[Any]":
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
        await connection.execute("BEGIN")
        return connection

    def execute(self, sql: str, parameters: Any, /) -> Any:
        return self._loop.run(self._connection.fetch(sql, *parameters))

    def commit(self) -> None:
        self._loop.run(self._connection.execute("COMMIT"))

    def rollback(self) -> None:
        self._loop.run(self._connection.execute("ROLLBACK"))

    def close(self) -> None:
        self._loop.run(self._connection.close())
