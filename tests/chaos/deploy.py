"""The next release of Tidemill, as far as its schema goes: each deploy brings one more migration that expands
(a column that old code does not know), and says that the code before it still works.

A member that is restarted in a deploy is told so by a file; its processes then know the new migrations, while
the others work on with the old code on the new schema.
"""

import os
from pathlib import Path
from types import ModuleType

from tidemill.engine.migrations import Migration, Script


def deploy(folder: Path, who: str) -> None:
    """The runner's side: from its next start on this member has one more migration than before."""
    (folder / f"{who}.release").write_text(str(release_of(folder, who) + 1))


def release_of(folder: Path, who: str) -> int:
    path = folder / f"{who}.release"
    return int(path.read_text()) if path.exists() else 0


def upgrade_from_environment() -> None:
    """A process's side."""
    extra = release_of(Path(os.environ["CHAOS_FOLDER"]), os.environ["CHAOS_WHO"])
    if extra:
        from tidemill.engines.postgres.db import schema as postgres
        from tidemill.engines.sqlite.db import schema as sqlite

        for module in (postgres, sqlite):
            _expand(module, extra)


def _expand(schema: ModuleType, extra: int) -> None:
    base = schema.MIGRATIONS[-1].version
    for number in range(1, extra + 1):
        version = base + number
        sql = f"ALTER TABLE job ADD COLUMN release_{number} integer;"
        schema.MIGRATIONS.append(Migration(version, base, (Script(f"{version:04}_release.sql", sql),)))
