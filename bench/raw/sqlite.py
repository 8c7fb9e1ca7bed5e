"""The frozen loop on SQLite: enqueue, claim, settle, and nothing else. The ceiling.

Honest means: one transaction per step with the durability asked for, an id that makes enqueue
idempotent, order by (queue, priority, seq), a fence on every settle, fair to a second process.
Left out is everything an engine adds: lanes, gates, members, promotion, expiry, times, counts.

Variants tried while the shape was sought (SQLite 3.40, FULL, batch 100, interleaved, jobs/s of `drain`
against the shape here, on a machine that was not idle; within 0.87 and 1.15 counts as a tie):

- `temp_store` at its default, a file: 0.78 (median of 13); at batch 10: 0.74 (of 7)
- WITHOUT ROWID, the id as primary key: 0.81 (of 11)
- 8 KiB pages; checkpoints every 2,000 pages; settle as one `UPDATE ... FROM (VALUES ...)`; settle by
  rowid instead of by id: ties, 1.07 to 1.13 (of 11); a cache of 16 MB: a tie (of 15)
- `bytes` as parameters instead of `bytearray`: by processor time 0.9, of enqueue 0.8 (of 15); the
  sqlite3 module looks for an adapter for each `bytes`, `None` and `bool` (0.7, 0.5, 0.5 microseconds;
  a `bytearray` costs 0.1)
"""

import itertools
import random
import secrets
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

READY, RUNNING, COMPLETED = 1, 2, 3
QUEUE = "default"
PRIORITY = 5
RESULT = bytearray(b"null")
PATIENCE_S = 30.0
"""How long one transaction may wait for its turn."""

# The rowid is the seq: one B-tree less than a key of its own, and the ready index ends in it by itself.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    seq      INTEGER PRIMARY KEY,
    id       BLOB    NOT NULL UNIQUE,
    queue    TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    state    INTEGER NOT NULL,
    token    INTEGER,
    body     BLOB    NOT NULL,
    result   BLOB
);
CREATE INDEX IF NOT EXISTS ready ON job (queue, priority) WHERE state = 1;
"""
_ENQUEUE = """
INSERT INTO job (id, queue, priority, state, body) VALUES (?, ?, ?, 1, ?) ON CONFLICT (id) DO NOTHING
"""
_CLAIM = """
UPDATE job SET state = 2, token = ?
WHERE seq IN (SELECT seq FROM job WHERE queue = ? AND state = 1 ORDER BY priority, seq LIMIT ?)
RETURNING id, seq, priority, body
"""
# Fenced by id and token alone; the token is cleared, so that a repeat finds nothing.
_SETTLE = "UPDATE job SET state = 3, result = ?, token = NULL WHERE id = ? AND token = ?"

Settlements = list[tuple[bytearray, bytearray, int]]


class Loop:
    """One connection of one process."""

    def __init__(self, path: Path, durability: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        # An own retry instead of busy_timeout: with the latter one of two processes got 0% of the work.
        self._db.execute("PRAGMA busy_timeout = 0")
        self._patiently("PRAGMA journal_mode = WAL")
        self._db.execute(f"PRAGMA synchronous = {durability}")
        self._db.execute("PRAGMA temp_store = MEMORY")
        # As the engine has it. Against the default of 1,000 pages: claim + settle a tie, bulk enqueue a
        # tie in short turns and 171k/s against 143k/s in turns of 20,000. While the WAL still grows to
        # this size, syncs are dearer (batch 10: 21k/s against 28k/s at the default): warm up first.
        self._db.execute("PRAGMA wal_autocheckpoint = 4000")
        self._patiently("BEGIN IMMEDIATE")
        for statement in _SCHEMA.split(";"):
            self._db.execute(statement)
        self._db.execute("COMMIT")
        self._tokens = itertools.count(secrets.randbits(52))

    def enqueue(self, jobs: Sequence[tuple[bytes, bytes]]) -> None:
        """Store jobs (id, body) in one transaction."""
        self._patiently("BEGIN IMMEDIATE")
        self._db.executemany(
            _ENQUEUE, [(bytearray(id_), QUEUE, PRIORITY, bytearray(body)) for id_, body in jobs]
        )
        self._db.execute("COMMIT")

    def drain(self, batch: int) -> int:
        """Settle the last batch and claim the next in one transaction: the fastest shape."""
        settled = 0
        held: Settlements = []
        while True:
            self._patiently("BEGIN IMMEDIATE")
            settled += self._settle(held)
            held = self._claim(batch)
            self._db.execute("COMMIT")
            if not held:
                return settled

    def drain_apart(self, batch: int) -> int:
        """Claim and settle in transactions of their own."""
        settled = 0
        while True:
            self._patiently("BEGIN IMMEDIATE")
            held = self._claim(batch)
            self._db.execute("COMMIT")
            if not held:
                return settled
            self._patiently("BEGIN IMMEDIATE")
            settled += self._settle(held)
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    def _claim(self, most: int) -> Settlements:
        token = next(self._tokens)
        rows = self._db.execute(_CLAIM, (token, QUEUE, most)).fetchall()
        rows.sort(key=_place)  # RETURNING promises no order
        return [(RESULT, bytearray(row[0]), token) for row in rows]

    def _settle(self, held: Settlements) -> int:
        if not held:
            return 0
        count: int = self._db.executemany(_SETTLE, held).rowcount
        if count != len(held):
            raise RuntimeError(f"only {count} of {len(held)} settlements applied")
        return count

    def _patiently(self, statement: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._db.execute(statement)
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.0001, 0.001))


def _place(row: tuple[bytes, int, int, bytes]) -> tuple[int, int]:
    return row[2], row[1]
