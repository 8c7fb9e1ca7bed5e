"""What the file and its WAL take, and whether a reader keeps the WAL from being used again."""

import os
from sqlite3 import Connection

from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.storage import HolderKind, Part, Storage, StorageHolder


def storage(db: Connection, url: SqliteUrl) -> Storage:
    """Begins with a checkpoint that does not wait: it answers how much of the WAL it had to leave because a
    connection still reads older pages. (The files are not opened for this: closing one would take away
    SQLite's own locks on it.)"""
    held = 0
    size: int = db.execute("PRAGMA page_size").fetchone()[0]
    if url.path is not None:
        busy, frames, folded = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        held = 0 if busy else max(0, frames - folded) * size
    pages: int = db.execute("PRAGMA page_count").fetchone()[0]
    free: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    parts = [Part(name="database", bytes=pages * size, free=free * size)]
    if url.path is not None:
        parts.append(Part(name="WAL", bytes=_size(f"{url.path}-wal")))
    parts.sort(key=lambda part: -part.bytes)
    holders = [StorageHolder(kind=HolderKind.READER, bytes=held)] if held else []
    return Storage(bytes=sum(part.bytes for part in parts), parts=parts, holders=holders)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
