"""The releases of a run, as far as they differ: each brings one more migration that expands (a column that
old code does not know) and says that the code before it still works, and declares one queue otherwise.

The runner writes the release of a member into a file. It counts from the member's next start on, also for the
worker processes that this start begins later, while the others work on with their own.
"""

import os
from pathlib import Path
from types import ModuleType

from tidemill.engine.migrations import Migration, Script

VARIABLE = "CHAOS_RELEASE"


def deploy(folder: Path, who: str, by: int = 1) -> None:
    """The runner's side: from its next start on this member has a later release, or an earlier one."""
    (folder / f"{who}.release").write_text(str(max(0, release_of(folder, who) + by)))


def release_of(folder: Path, who: str) -> int:
    path = folder / f"{who}.release"
    return int(path.read_text()) if path.exists() else 0


def release_here() -> int:
    """A process's side: the release that its member was started with."""
    return int(os.environ.get(VARIABLE, "0"))


def upgrade_from_environment() -> None:
    """A process's side: the migrations that it knows."""
    extra = release_here()
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
