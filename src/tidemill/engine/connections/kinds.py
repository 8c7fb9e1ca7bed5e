"""Which adapter a connection gets: by the names of its classes."""

from importlib import import_module

from tidemill.engine.connections.adapter import Adapter, AsyncAdapter
from tidemill.model.errors import NoTransaction

_HERE = __name__.rpartition(".")[0]

_KINDS = {
    "sqlite3.Connection": ("sqlite", "Sqlite"),
    "aiosqlite.core.Connection": ("sqlite", "AsyncSqlite"),
    "psycopg.Connection": ("psycopg", "Psycopg"),
    "psycopg.AsyncConnection": ("psycopg", "AsyncPsycopg"),
    "asyncpg.connection.Connection": ("asyncpg", "Asyncpg"),
    "asyncpg.pool.PoolConnectionProxy": ("asyncpg", "Asyncpg"),
    "sqlalchemy.engine.base.Connection": ("sqlalchemy", "Sqlalchemy"),
    "sqlalchemy.orm.session.Session": ("sqlalchemy", "of_session"),
    "sqlalchemy.orm.scoping.scoped_session": ("sqlalchemy", "of_session"),
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": ("sqlalchemy", "AsyncSqlalchemy"),
    "sqlalchemy.ext.asyncio.session.AsyncSession": ("sqlalchemy", "AsyncSqlalchemy"),
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": ("sqlalchemy", "of_async_scoped_session"),
    "django.db.backends.base.base.BaseDatabaseWrapper": ("django", "Django"),
    "django.utils.connection.ConnectionProxy": ("django", "Django"),
}
"""Qualified name of a class -> the adapter's module and maker."""

_ENGINE = "an engine is not a transaction: pass the connection of `{}with engine.begin() as connection:`"
_MAKER = "a session maker is not a transaction: pass the session of `{}with maker.begin() as session:`"
_POOL = "a pool is not a transaction: take a connection from it and begin one"
_CURSOR = "pass the connection, not its cursor"
_INSTEAD = {
    "sqlalchemy.engine.base.Engine": _ENGINE.format(""),
    "sqlalchemy.ext.asyncio.engine.AsyncEngine": _ENGINE.format("async "),
    "sqlalchemy.orm.session.sessionmaker": _MAKER.format(""),
    "sqlalchemy.ext.asyncio.session.async_sessionmaker": _MAKER.format("async "),
    "asyncpg.pool.Pool": _POOL,
    "psycopg_pool.pool.ConnectionPool": _POOL,
    "psycopg_pool.pool_async.AsyncConnectionPool": _POOL,
    "sqlite3.Cursor": _CURSOR,
    "psycopg.Cursor": _CURSOR,
    "psycopg.AsyncCursor": _CURSOR,
    "psycopg2.extensions.connection": "psycopg2 is not supported: use psycopg 3",
}
"""What is often taken for a transaction, and what to pass in its place."""

_KNOWN = (
    "a connection of sqlite3, aiosqlite, psycopg 3 or asyncpg, a connection or session of SQLAlchemy, "
    "or Django's connection"
)


def adapter_of(connection: object) -> Adapter | AsyncAdapter:
    """The adapter for a connection, or `NoTransaction`."""
    for kind in type(connection).__mro__:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in _KINDS:
            module, maker = _KINDS[name]
            adapter: Adapter | AsyncAdapter = getattr(import_module(f"{_HERE}.{module}"), maker)(connection)
            return adapter
        if name in _INSTEAD:
            raise NoTransaction(f"transaction=: {_INSTEAD[name]}")
    raise NoTransaction(
        f"transaction= takes {_KNOWN}, not {type(connection).__module__}.{type(connection).__name__}"
    )
