"""Ways for a process to die in the middle of an operation, chosen to the statement, or to the byte.

The connection of the engine is replaced by one that counts, in a process that is about to die; nothing
in the engine knows of it.
"""

import os
import resource
import signal
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.integration.sqlite.plain_file import beside

Kind = Literal["never", "statement", "instruction", "byte", "answer"]
"""Before the nth statement; at the nth look of SQLite's machine at its progress handler, which comes
within statements and between the rows of an `executemany`; after n bytes of what a commit writes to the
WAL; after the commit and before the answer."""


@dataclass
class Death:
    """When the process dies. `never` only counts what there is to die at."""

    path: Path
    kind: Kind = "never"
    at: int = 0
    armed: bool = False
    statements: int = 0
    instructions: int = 0
    commit_bytes: int = 0
    _watched: set[int] = field(default_factory=set)

    def comes(self) -> None:
        """Install it: every connection opened from now on is watched, once armed."""
        open_plainly, death = sqlite3.connect, self
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        class Watched(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                before = death.before(self, sql)
                cursor = super().execute(sql, parameters)
                death.after(sql, before)
                return cursor

            def executemany(self, sql: str, rows: Any, /) -> sqlite3.Cursor:
                death.before(self, sql)
                return super().executemany(sql, rows)

        def connect(*args: Any, **options: Any) -> sqlite3.Connection:
            return open_plainly(*args, **options, factory=Watched)

        sqlite3.connect = connect  # type: ignore[assignment]

    def before(self, db: sqlite3.Connection, sql: str) -> int:
        """A statement is about to run. Answers how long the WAL is."""
        if not self.armed:
            return 0
        if self.kind in ("never", "instruction") and id(db) not in self._watched:
            self._watched.add(id(db))
            db.set_progress_handler(self._progress, 1)
        self.statements += 1
        if (self.kind, self.at) == ("statement", self.statements):
            die()
        if sql != "COMMIT":
            return 0
        wal = beside(self.path, "-wal")
        size = wal.stat().st_size if wal.exists() else 0
        if self.kind == "byte":
            die_writing(size + self.at)
        return size

    def after(self, sql: str, wal_before: int) -> None:
        """A statement has run."""
        if self.armed and sql == "COMMIT":
            self.commit_bytes += beside(self.path, "-wal").stat().st_size - wal_before
            if self.kind == "answer":
                die()

    def _progress(self) -> int:
        self.instructions += 1
        if (self.kind, self.at) == ("instruction", self.instructions):
            die()
        return 0


def die() -> None:
    """At once, without any chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_writing(beyond: int) -> None:
    """At the first write beyond this size of a file; what lies before it is written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, resource.RLIM_INFINITY))


def spread(most: int, count: int) -> Sequence[int]:
    """Up to `count` numbers from 1 to `most`, evenly spread, both ends among them."""
    if most <= count:
        return range(1, most + 1)
    return sorted({1 + round(part * (most - 1) / (count - 1)) for part in range(count)})
