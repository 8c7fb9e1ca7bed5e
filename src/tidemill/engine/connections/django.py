"""The adapter for Django: `django.db.connection` or one of `django.db.connections`, on sqlite3 or psycopg 3.

Django decides about transactions (`atomic`), the driver's own connection runs the statements.
"""

from typing import Any

from tidemill.engine.connections.adapter import Adapter, Dialect, Rows, at_once
from tidemill.engine.connections.psycopg import Psycopg
from tidemill.engine.connections.sqlite import Sqlite
from tidemill.model.errors import NoTransaction
from tidemill.model.view import Statement


class Django(Adapter):
    """A `DatabaseWrapper`, or the proxy of one."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        vendor: str = connection.vendor
        if vendor not in ("postgresql", "sqlite"):
            raise NoTransaction(f"jobs can be stored in PostgreSQL and SQLite, not in {vendor}")
        self.dialect: Dialect = "sqlite" if vendor == "sqlite" else "postgresql"

    def check(self) -> None:
        self._connection.ensure_connection()
        if not self._connection.in_atomic_block and self._connection.get_autocommit():
            raise at_once("Django connection", "begin one with `with transaction.atomic():`")

    def execute(self, statement: Statement) -> Rows:
        with self._connection.wrap_database_errors:
            return self._driver().execute(statement)

    def _driver(self) -> Adapter:
        driver = self._connection.connection
        if self.dialect == "sqlite":
            return Sqlite(driver)
        if not type(driver).__module__.startswith("psycopg2"):
            return Psycopg(driver)
        raise NoTransaction("psycopg2 is not supported: install psycopg 3, and Django uses that")
