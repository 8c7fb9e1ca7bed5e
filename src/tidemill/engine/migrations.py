"""The schema of an engine that speaks SQL, and the numbered migrations that come after it.

Version 1 is the folder `schema/`: one script per facet, run in the order that the engine states. Every later
version is one file `migrations/NNNN_words.sql`, from 0002 on. Its first line says `-- oldest code: N`: the
lowest schema version whose code still works on the schema that this migration leaves. A migration expands;
the release after it contracts. So old and new workers run side by side during a deploy.

An engine runs the versions that are missing, in order, under its own lock, and writes the version in the same
step.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidemill.engine.files import folder_of
from tidemill.model.errors import SchemaTooNew

_FILE = re.compile(r"(\d{4})_\w+\.sql")
_OLDEST = re.compile(r"-- oldest code: (\d+)\n")


class Script(NamedTuple):
    """One file of SQL."""

    name: str
    sql: str


class Migration(NamedTuple):
    """One version of the schema."""

    version: int
    oldest_code: int
    scripts: tuple[Script, ...]


def load_migrations(package: str, schema: Sequence[str]) -> list[Migration]:
    """All versions of a package, in order, without a gap. `schema` names the scripts of version 1 in the
    order in which they run: "jobs/claim" is the file `schema/jobs/claim.sql`."""
    folder = folder_of(package)
    return [
        _first(package, folder.joinpath("schema"), schema),
        *_later(package, folder.joinpath("migrations")),
    ]


def _first(package: str, folder: Path, order: Sequence[str]) -> Migration:
    found = dict(_scripts(folder, ""))
    if sorted(found) != sorted(order):
        differing = ", ".join(sorted(set(found).symmetric_difference(order))) or "a script twice"
        raise ValueError(f"the schema of {package} and its order differ: {differing}")
    return Migration(1, 1, tuple(Script(name, found[name]) for name in order))


def _scripts(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _scripts(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            yield prefix + entry.name.removesuffix(".sql"), entry.read_text("utf-8")


def _later(package: str, folder: Path) -> list[Migration]:
    found = []
    for file in folder.iterdir() if folder.is_dir() else ():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text("utf-8")
            oldest = _OLDEST.match(text)
            if oldest is None:
                raise ValueError(f"{file.name} does not begin with '-- oldest code: N'")
            found.append(Migration(int(match[1]), int(oldest[1]), (Script(file.name, text),)))
    found.sort()
    if [migration.version for migration in found] != list(range(2, len(found) + 2)):
        raise ValueError(f"the migrations of {package} are not numbered 2, 3, 4, ...")
    return found


def check_schema(*, code: int, schema: int, oldest_code: int, where: str) -> None:
    """Refuse a schema that says that this code is too old for it."""
    if schema > code and code < oldest_code:
        raise SchemaTooNew(
            f"{where} has schema version {schema}, which needs code that knows version {oldest_code}; "
            f"this Tidemill knows version {code}: upgrade it"
        )
