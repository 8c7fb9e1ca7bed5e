"""SQLite connections: how they are opened, and how SQLite's errors become ours."""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.errors import EngineDamaged, EngineError, EngineFull, EngineUnavailable, NotOurs

APPLICATION_ID = 0x54494445
"""Marks a file as ours ("TIDE"), in the header that SQLite keeps for this."""

_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
_CACHED_STATEMENTS = 512
_CHECKPOINT_PAGES = 4_000
"""The WAL grows to 16 MB before it is folded into the file: at the default of 1,000 pages a
checkpoint came every 20 to 30 batches of 100 jobs."""
_EAGER_S, _EAGER_WAIT_S, _PATIENT_WAIT_S = 0.05, (0.0001, 0.001), 0.05
"""How often the write lock is tried: every 0.1 to 1 ms for 50 ms, then backing off to every 50 ms.
SQLite's own busy_timeout sleeps in a fixed pattern: of two busy processes one got nothing."""


def open_connection(url: SqliteUrl, *, writes: bool) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun by hand."""
    db = sqlite3.connect(
        url.path or ":memory:",
        isolation_level=None,
        timeout=0,
        cached_statements=_CACHED_STATEMENTS,
        check_same_thread=False,  # the writer's goes from thread to thread, one at a time
    )
    try:
        db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[url.durability]}")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA cache_size = -16384")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        if not writes:
            db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def retry_waits(patience_s: float) -> Iterator[float]:
    """How long to sleep before each further try for the lock, until patience runs out."""
    begin = time.monotonic()
    patient = _EAGER_WAIT_S[1]
    while (waited := time.monotonic() - begin) < patience_s:
        if waited < _EAGER_S:
            yield random.uniform(*_EAGER_WAIT_S)
        else:
            patient = min(patient * 1.5, _PATIENT_WAIT_S)
            yield patient * random.uniform(0.5, 1.0)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has what we want."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def begin(db: sqlite3.Connection, patience_s: float, how: str = "BEGIN IMMEDIATE") -> None:
    """Begin a transaction, waiting for the lock as long as patience lasts."""
    waits = retry_waits(patience_s)
    while True:
        try:
            db.execute(how)
            return
        except sqlite3.OperationalError as error:
            wait = next(waits, None) if is_busy(error) else None
            if wait is None:
                raise
            time.sleep(wait)


def patiently(url: SqliteUrl, opening: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """Open a connection while other processes may be making, migrating or recovering the file."""
    waits = retry_waits(url.lock_timeout)
    while True:
        try:
            return opening()
        except sqlite3.Error as error:
            wait = next(waits, None) if is_busy(error) else None
            if wait is None:
                raise translate(error, url) from error
            time.sleep(wait)


def roll_back(db: sqlite3.Connection) -> None:
    """Undo a transaction after an error; where that fails too, the next BEGIN says why."""
    with suppress(sqlite3.Error):
        db.execute("ROLLBACK")


def translate(error: Exception, url: SqliteUrl) -> EngineError:
    """Our error for one of SQLite's, or for data that is not as we left it."""
    if not isinstance(error, sqlite3.Error):
        return EngineDamaged(
            f"{url} holds something unexpected ({type(error).__name__}: {error}): stop all processes, "
            "and restore a backup if somebody changed the file by hand"
        )
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return EngineUnavailable(
            f"{url} was locked by another process for over {url.lock_timeout:g} s; "
            "look for a long transaction on that file, or raise lock_timeout"
        )
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_space(url)):
        return EngineFull(f"no space is left for {url}; nothing was changed: free some and try again")
    if code == sqlite3.SQLITE_NOTADB:
        return NotOurs(f"{url} is not a SQLite database; give another path")
    if code == sqlite3.SQLITE_CORRUPT:
        return EngineDamaged(f"{url} is damaged ({error}): stop all processes and restore a backup")
    return EngineUnavailable(f"{url} cannot be used now: {error}")


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # extended codes carry the primary one in their low byte


def _no_space(url: SqliteUrl) -> bool:
    space = os.statvfs(os.path.dirname(url.path or "/"))
    return space.f_bavail * space.f_frsize < 1 << 16
