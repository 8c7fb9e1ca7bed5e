"""Numbered migrations for engines that speak SQL.

A migration is a file `migrations/NNNN_words.sql`; its first line says `-- oldest code: N`, the lowest
schema version whose code still works on the schema that this migration leaves. Migrations expand
first and contract a release later, so that old and new workers run side by side during a deploy.
An engine runs those that are missing, in order, under its own lock, each with its version in one step.
"""

import re
from importlib.resources import files
from typing import NamedTuple

from tidemill.model.errors import SchemaTooNew

_FILE = re.compile(r"(\d{4})_\w+\.sql")
_OLDEST = re.compile(r"-- oldest code: (\d+)\n")


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    oldest_code: int
    name: str
    sql: str


def load_migrations(package: str) -> list[Migration]:
    """All migrations of a package, in order, without a gap."""
    found = []
    for file in files(package).joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text()
            oldest = _OLDEST.match(text)
            if oldest is None:
                raise ValueError(f"{file.name} does not begin with '-- oldest code: N'")
            found.append(Migration(int(match[1]), int(oldest[1]), file.name, text))
    found.sort()
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered 1, 2, 3, ...")
    return found


def check_schema(*, code: int, schema: int, oldest_code: int, place: str) -> None:
    """Refuse a schema that says that this code is too old for it."""
    if schema > code and code < oldest_code:
        raise SchemaTooNew(
            f"{place} has schema version {schema}, which needs code that knows version {oldest_code}; "
            f"this Tidemill knows version {code}: upgrade it"
        )
