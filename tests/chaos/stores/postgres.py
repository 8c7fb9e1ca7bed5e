"""A private PostgreSQL behind a proxy for each link."""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from tests.chaos.stores.store import CALL_TIMEOUT_S, Store
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import POSTGRES, Proxy
from tidemill.engine import connections
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob

SETTINGS = {"max_wal_size": "128MB", "min_wal_size": "32MB", "max_connections": "200"}
"""Fits on the small disk."""
_LEAVE = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'tidemill%'"
)


class PostgresStore(Store):
    able = frozenset({"server", "links", "storm", "disk", "transaction", "clock"})

    async def start(self) -> None:
        self._server = PostgresServer(settings=SETTINGS, disk=self.disk.folder)
        await asyncio.to_thread(self._server.start)
        await self._open_links([Proxy(self._server.port, POSTGRES) for _ in range(self._links)])

    def url(self, link: int | None = None) -> str:
        port = self._server.port if link is None else self.proxies[link].port
        return (
            f"postgresql://tidemill@127.0.0.1:{port}/postgres?call_timeout={CALL_TIMEOUT_S}&connect_timeout=2"
        )

    def shut(self) -> None:
        self._server.close()

    def kill(self) -> None:
        if self._server.alive:
            self._server.kill()

    def start_again(self) -> None:
        if not self._server.alive:
            self._server.start()

    def pause(self) -> None:
        self._server.pause()

    def resume(self) -> None:
        self._server.resume()

    def close_connections(self) -> None:
        asyncio.run(self._leave())

    async def _leave(self) -> None:
        with suppress(OSError, asyncpg.PostgresError):
            connection = await asyncpg.connect(self._server.url(), timeout=2)
            await connection.execute(_LEAVE)
            await connection.close()

    async def hold_transaction(self, length_s: float) -> None:
        """With a job in it, which is rolled back: it must never run."""
        engine = await connect(self.url())
        connection: asyncpg.Connection[Any] = await asyncpg.connect(self._server.url())
        try:
            transaction = connection.transaction()
            await transaction.start()
            assert engine.transactions is not None
            job = NewJob(id=new_id(), task="tests.chaos.app.quick", queue="default")
            await connections.aplay(connection, engine.transactions.enqueue([job]))
            await asyncio.sleep(length_s)
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):  # the server was killed
                await transaction.rollback()
        finally:
            connection.terminate()
            await engine.close()
