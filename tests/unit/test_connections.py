"""Placeholders, and how a connection's kind is told."""

import subprocess
import sys

import pytest

from tidemill.engine.connections.kinds import adapter_of
from tidemill.engine.connections.placeholders import formatted
from tidemill.model.errors import NoTransaction
from tidemill.model.view import Statement


def test_numbered_placeholders_become_formatted_ones_in_their_order() -> None:
    statement = Statement("SELECT $2::text, $1, '%', $10, $2", tuple("abcdefghij"))
    assert formatted(statement) == ("SELECT %s::text, %s, '%%', %s, %s", ("b", "a", "j", "b"))


def test_a_class_of_ones_own_is_known_by_its_ancestors() -> None:
    import sqlite3

    class Mine(sqlite3.Connection): ...

    connection = Mine(":memory:")
    assert type(adapter_of(connection)).__name__ == "Sqlite"
    connection.close()


@pytest.mark.parametrize("value", [1, "postgresql://", object(), None])
def test_other_things_are_refused(value: object) -> None:
    with pytest.raises(NoTransaction, match="transaction= takes a connection"):
        adapter_of(value)


def test_no_driver_is_imported() -> None:
    drivers = "('aiosqlite', 'asyncpg', 'django', 'psycopg', 'sqlalchemy', 'sqlite3')"
    code = (
        "import sys; from tidemill.engine.connections import asyncpg, django, psycopg, sqlalchemy, sqlite; "
        f"print([name for name in {drivers} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
