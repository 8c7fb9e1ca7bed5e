"""The user's own connections, of every kind that is awaited."""

import sqlite3
from abc import ABC, abstractmethod
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

from tests.integration.transactions.sqlite_path import path_of


class Way(ABC):
    """One kind of connection, with a transaction of its own."""

    connection: Any
    """What is passed as `transaction=`."""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    async def open(self) -> None: ...

    async def begin(self) -> None:
        """Where it does not begin by itself."""
        return

    @abstractmethod
    async def run(self, sql: str) -> list[Any]: ...

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()


class Sqlite3OnALoop(Way):
    """A blocking connection in async code."""

    async def open(self) -> None:
        self.connection = sqlite3.connect(path_of(self.url))

    async def run(self, sql: str) -> list[Any]:
        return list(self.connection.execute(sql).fetchall())

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class Aiosqlite(Way):
    async def open(self) -> None:
        self.connection = await aiosqlite.connect(path_of(self.url))

    async def run(self, sql: str) -> list[Any]:
        return list(await self.connection.execute_fetchall(sql))


class Asyncpg(Way):
    async def open(self) -> None:
        self.connection = await asyncpg.connect(self.url)

    async def begin(self) -> None:
        self._transaction = self.connection.transaction()
        await self._transaction.start()

    async def run(self, sql: str) -> list[Any]:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()


class AsyncpgFromAPool(Asyncpg):
    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(self.url, min_size=1, max_size=1)
        self.connection = await self._pool.acquire()

    async def close(self) -> None:
        await self._pool.release(self.connection)
        await self._pool.close()


class Psycopg(Way):
    async def open(self) -> None:
        self.connection = await psycopg.AsyncConnection.connect(self.url)

    async def run(self, sql: str) -> list[Any]:
        cursor = await self.connection.execute(sql)
        return list(await cursor.fetchall()) if cursor.description else []


class SqlalchemyConnection(Way):
    driver = "psycopg"

    async def open(self) -> None:
        if self.url.startswith("postgresql"):
            url = self.url.replace("postgresql://", f"postgresql+{self.driver}://")
        else:
            url = f"sqlite+aiosqlite:///{path_of(self.url)}"
        self._engine = sqlalchemy_asyncio.create_async_engine(url)
        self.connection = await self._engine.connect()

    async def run(self, sql: str) -> list[Any]:
        result = await self.connection.execute(sqlalchemy.text(sql))
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    async def close(self) -> None:
        await self.connection.close()
        await self._engine.dispose()


class SqlalchemySession(SqlalchemyConnection):
    async def open(self) -> None:
        await super().open()
        await self.connection.close()
        self.connection = sqlalchemy_asyncio.AsyncSession(self._engine)


class SqlalchemyAsyncpgConnection(SqlalchemyConnection):
    driver = "asyncpg"


class SqlalchemyAsyncpgSession(SqlalchemySession):
    driver = "asyncpg"


SQLITE: list[type[Way]] = [Sqlite3OnALoop, Aiosqlite, SqlalchemyConnection, SqlalchemySession]
POSTGRES: list[type[Way]] = [
    Asyncpg, AsyncpgFromAPool, Psycopg, SqlalchemyConnection, SqlalchemySession, SqlalchemyAsyncpgConnection,
    SqlalchemyAsyncpgSession,
]  # fmt: skip
WAYS = [("sqlite-file", way) for way in SQLITE] + [("postgres-server", way) for way in POSTGRES]
NAMES = [f"{mode}-{way.__name__}" for mode, way in WAYS]
