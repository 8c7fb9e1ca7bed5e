"""The adapter for asyncpg. Every statement stands at once unless a transaction was begun."""

from typing import Any

from tidemill.engine.connections.adapter import Rows, StatementAdapter, at_once
from tidemill.engine.connections.placeholders import positional
from tidemill.model.view import Statement


class Asyncpg(StatementAdapter):
    """`asyncpg.Connection`, of its own or from a pool."""

    dialect = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def check(self) -> None:
        if not self._connection.is_in_transaction():
            raise at_once("connection", "begin one with `async with connection.transaction():`")

    async def execute(self, statement: Statement) -> Rows:
        return [tuple(row) for row in await self._connection.fetch(statement.sql, *positional(statement))]
