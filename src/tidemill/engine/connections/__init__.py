"""Connections of the caller's own: how the scripts of the `transactions` facet are played on them.

An adapter is small: it knows whether a transaction is open (or begins by itself with the next statement),
runs one statement, and gives its rows back. It runs in the caller's thread or on the caller's loop, never
anywhere else: a connection belongs to the code that opened it. Which adapter fits is decided by the names of
the connection's classes, so that no driver is ever imported here.

| connection | adapter | begins by itself |
|---|---|---|
| sqlite3, aiosqlite | `sqlite` | unless `isolation_level=None` |
| psycopg 3, sync and async | `psycopg` | unless `autocommit=True` |
| asyncpg | `asyncpg` | never |
| SQLAlchemy connection or session, sync and async, on any of those | `sqlalchemy` | yes |
| Django's, on sqlite3 or psycopg 3 | `django` | in `atomic()` |
"""

from typing import TypeVar

from tidemill.engine.connections.adapter import Adapter
from tidemill.engine.connections.kinds import adapter_of
from tidemill.engine.protocol import Script
from tidemill.model.errors import NoTransaction

T = TypeVar("T")

__all__ = ["aplay", "play"]


def play(connection: object, script: Script[T], *, twin: str) -> T:
    """Run a script in the transaction of a blocking connection. `twin`: what to call for the others."""
    adapter = adapter_of(connection)
    if not isinstance(adapter, Adapter):
        raise NoTransaction(
            f"{type(connection).__name__} is an async connection, which works on its own loop only: "
            f"use `await {twin}(...)` there"
        )
    return adapter.play(script)


async def aplay(connection: object, script: Script[T]) -> T:
    """Run a script from async code. A blocking connection is used here and now, and blocks this
    loop with every statement."""
    adapter = adapter_of(connection)
    return adapter.play(script) if isinstance(adapter, Adapter) else await adapter.play(script)
