"""The adapter for SQLAlchemy: connections and sessions, on sqlite3, aiosqlite, psycopg 3 and asyncpg.

A session is its connection in the transaction that it is in. The async forms are the blocking ones inside
`run_sync`, where SQLAlchemy itself turns blocking calls of its own into awaits.
"""

from typing import Any, TypeVar, cast

from tidemill.engine.connections import sqlite
from tidemill.engine.connections.adapter import Adapter, AsyncAdapter, Dialect, Rows, at_once
from tidemill.engine.connections.placeholders import formatted, positional
from tidemill.engine.protocol import Script
from tidemill.model.errors import NoTransaction
from tidemill.model.view import Statement

T = TypeVar("T")

_DRIVERS = ("aiosqlite", "asyncpg", "psycopg", "psycopg_async", "pysqlite")


class Sqlalchemy(Adapter):
    """`sqlalchemy.Connection`"""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._driver: str = connection.dialect.driver
        if self._driver not in _DRIVERS:
            raise NoTransaction(
                f"jobs can be stored through SQLAlchemy with psycopg 3, asyncpg or sqlite3, not with "
                f"{connection.dialect.name}+{self._driver}"
            )
        self.dialect = cast(Dialect, connection.dialect.name)

    def check(self) -> None:
        if not self._connection.in_transaction():
            self._connection.begin()  # as its next statement would
        proxied = self._connection.connection
        try:
            if self._driver == "aiosqlite":
                proxied.dbapi_connection.run_async(sqlite.check_async)
            elif self.dialect == "sqlite":
                sqlite.check(proxied.driver_connection)
            elif proxied.dbapi_connection.autocommit is True:
                raise at_once("connection", "")
        except NoTransaction:
            raise at_once("connection", 'use one whose isolation_level is not "AUTOCOMMIT"') from None

    def execute(self, statement: Statement) -> Rows:
        result = self._connection.exec_driver_sql(*self._translated(statement))
        return result.fetchall() if result.returns_rows else []

    def _translated(self, statement: Statement) -> tuple[str, Any]:
        if self.dialect == "sqlite":
            return statement.sql, statement.parameters
        if self._driver == "asyncpg":
            return statement.sql, positional(statement)
        return formatted(statement)


def of_session(session: Any) -> Sqlalchemy:
    """For `Session` and `scoped_session`."""
    return Sqlalchemy(session.connection())


class AsyncSqlalchemy(AsyncAdapter):
    """`AsyncConnection` and `AsyncSession`"""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def play(self, script: Script[T]) -> T:
        def inside(blocking: Any) -> T:
            adapter = of_session(blocking) if hasattr(blocking, "get_bind") else Sqlalchemy(blocking)
            return adapter.play(script)

        answer: T = await self._connection.run_sync(inside)
        return answer


def of_async_scoped_session(registry: Any) -> AsyncSqlalchemy:
    """For `async_scoped_session`: the session of the present scope."""
    return AsyncSqlalchemy(registry())
