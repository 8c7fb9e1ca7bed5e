"""The user's own connections, of every kind that blocks."""

import sqlite3
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import django
import psycopg
import sqlalchemy
from django.conf import settings
from django.db import connection as django_connection
from django.db import connections, transaction
from django.db.utils import ConnectionHandler
from sqlalchemy import orm

from tests.integration.transactions.sqlite_path import path_of

if not settings.configured:
    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
    django.setup()


class Way(ABC):
    """One kind of connection, with a transaction of its own."""

    connection: Any
    """What is passed as `transaction=`."""

    def __init__(self, url: str) -> None:
        self.url = url

    def begin(self) -> None:
        """Where it does not begin by itself."""
        return

    @abstractmethod
    def run(self, sql: str) -> list[Any]: ...

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()


class Sqlite3(Way):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection = sqlite3.connect(path_of(url))
        self.connection.row_factory = lambda cursor, row: {"of my own": row}

    def run(self, sql: str) -> list[Any]:
        return [row["of my own"] for row in self.connection.execute(sql).fetchall()]


class Sqlite3ByHand(Sqlite3):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection.isolation_level = None

    def begin(self) -> None:
        self.connection.execute("BEGIN")


class Psycopg(Way):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection = psycopg.connect(url, row_factory=psycopg.rows.dict_row)

    def run(self, sql: str) -> list[Any]:
        cursor = self.connection.execute(sql)
        return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []


class PsycopgRaw(Psycopg):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection.cursor_factory = psycopg.RawCursor


class PsycopgAutocommit(Psycopg):
    """In autocommit, with a transaction by hand."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection.autocommit = True

    def begin(self) -> None:
        self.connection.execute("BEGIN")


def sqlalchemy_url(url: str) -> str:
    if url.startswith("postgresql"):
        return url.replace("postgresql://", "postgresql+psycopg://")
    return f"sqlite:///{path_of(url)}"


class SqlalchemyConnection(Way):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._engine = sqlalchemy.create_engine(sqlalchemy_url(url))
        self.connection = self._engine.connect()

    def run(self, sql: str) -> list[Any]:
        result = self.connection.execute(sqlalchemy.text(sql))
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    def close(self) -> None:
        self.connection.close()
        self._engine.dispose()


class SqlalchemySession(SqlalchemyConnection):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection.close()
        self.connection = orm.Session(self._engine)


class SqlalchemyScopedSession(SqlalchemyConnection):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.connection.close()
        self.connection = orm.scoped_session(orm.sessionmaker(self._engine))


class Django(Way):
    connection = django_connection

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        if parts.scheme == "postgresql":
            place = {
                "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:], "USER": parts.username,
                "HOST": parts.hostname, "PORT": parts.port,
            }  # fmt: skip
        else:
            place = {"ENGINE": "django.db.backends.sqlite3", "NAME": path_of(url)}
        with suppress(AttributeError):  # one to another place
            del connections["default"]
        connections.settings["default"] = ConnectionHandler({"default": place}).settings["default"]
        self._atomic = transaction.atomic()

    def begin(self) -> None:
        self._atomic = transaction.atomic()
        self._atomic.__enter__()

    def run(self, sql: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def commit(self) -> None:
        self._atomic.__exit__(None, None, None)

    def rollback(self) -> None:
        transaction.set_rollback(True)
        self._atomic.__exit__(None, None, None)

    def close(self) -> None:
        self.connection.close()
        del connections["default"]


SQLITE: list[type[Way]] = [Sqlite3, Sqlite3ByHand, SqlalchemyConnection, SqlalchemySession, Django]
POSTGRES: list[type[Way]] = [
    Psycopg, PsycopgRaw, PsycopgAutocommit, SqlalchemyConnection, SqlalchemySession, SqlalchemyScopedSession,
    Django,
]  # fmt: skip
WAYS = [("sqlite-file", way) for way in SQLITE] + [("postgres-server", way) for way in POSTGRES]
NAMES = [f"{mode}-{way.__name__}" for mode, way in WAYS]
