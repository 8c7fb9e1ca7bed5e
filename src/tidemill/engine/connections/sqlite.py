"""The adapter for sqlite3 and aiosqlite.

By default they begin a transaction with the first statement that writes.
"""

from typing import Any

from tidemill.engine.connections.adapter import Adapter, Rows, StatementAdapter, at_once
from tidemill.model.view import Statement


class Sqlite(Adapter):
    """`sqlite3.Connection`"""

    dialect = "sqlite"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        check(self._connection)

    def execute(self, statement: Statement) -> Rows:
        cursor = self._connection.cursor()
        try:
            cursor.row_factory = None  # plain rows, whatever the connection makes of its own
            return cursor.execute(statement.sql, statement.parameters).fetchall()  # type: ignore[no-any-return]
        finally:
            cursor.close()


class AsyncSqlite(StatementAdapter):
    """`aiosqlite.Connection`"""

    dialect = "sqlite"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def check(self) -> None:
        await check_async(self._connection)

    async def execute(self, statement: Statement) -> Rows:
        async with self._connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(statement.sql, statement.parameters)
            return list(await cursor.fetchall())


def check(connection: Any) -> None:
    """`NoTransaction` unless one is open or will begin by itself. Since Python 3.12 `autocommit` says which
    of them it is: True, False, or -1 for "as `isolation_level` says"."""
    autocommit = getattr(connection, "autocommit", -1)
    at_will = autocommit is True or (autocommit == -1 and connection.isolation_level is None)
    if at_will and not connection.in_transaction:
        raise at_once("connection", 'begin one with connection.execute("BEGIN IMMEDIATE")')


async def check_async(connection: Any) -> None:
    """`check` for aiosqlite, on the thread of its connection: sqlite3 lets no other thread read `autocommit`.
    aiosqlite has no public name for that thread, nor for the connection."""
    await connection._execute(check, connection._conn)
