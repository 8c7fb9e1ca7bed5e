"""The adapter for psycopg 3.

A connection that is not in autocommit begins a transaction with its first statement.
"""

from typing import Any

from tidemill.engine.connections.adapter import Adapter, Rows, StatementAdapter, at_once
from tidemill.engine.connections.placeholders import formatted, positional
from tidemill.model.view import Statement

IDLE = 0
"""`psycopg.pq.TransactionStatus.IDLE`: no transaction is open."""


class Psycopg(Adapter):
    """`psycopg.Connection`"""

    dialect = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        _check(self._connection, "")

    def execute(self, statement: Statement) -> Rows:
        with self._connection.cursor(row_factory=_tuples) as cursor:
            cursor.execute(*_for(cursor, statement))
            return cursor.fetchall() if cursor.description else []


class AsyncPsycopg(StatementAdapter):
    """`psycopg.AsyncConnection`"""

    dialect = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def check(self) -> None:
        _check(self._connection, "async ")

    async def execute(self, statement: Statement) -> Rows:
        async with self._connection.cursor(row_factory=_tuples) as cursor:
            await cursor.execute(*_for(cursor, statement))
            return await cursor.fetchall() if cursor.description else []


def _check(connection: Any, prefix: str) -> None:
    if connection.autocommit and connection.info.transaction_status == IDLE:
        raise at_once("connection", f"begin one with `{prefix}with connection.transaction():`")


def _for(cursor: Any, statement: Statement) -> tuple[str, Any]:
    """As this kind of cursor wants it: raw ones take PostgreSQL's own placeholders."""
    raw = any("Raw" in kind.__name__ for kind in type(cursor).__mro__)
    return (statement.sql, positional(statement)) if raw else formatted(statement)


def _tuples(_cursor: Any) -> Any:
    """A row factory: plain rows, whatever the connection makes of its own."""
    return tuple
