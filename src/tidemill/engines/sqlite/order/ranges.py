"""Ranges: rows that stand for consecutive jobs, from `first` to `last`.

Jobs that are enqueued together are mostly claimed and settled together. As a range they are one row in the
order of their lane, one row among the runs and one row among the ended, however many they are. A job alone is
a range of one. The key of a row is its last job: taking jobs from the front, as claims do, changes no key.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from tidemill.engine.shared.statements import load_statements

SQL = load_statements("tidemill.engines.sqlite", "ranges")


Key = tuple[object, ...]
Part = tuple[Key, int, int, int, int]
"""The key and the bounds of a row, first and last; and what is taken out of it, from first to last."""


class Ranges:
    """One table of ranges."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._find: str = getattr(SQL, f"{table}_find")
        self._shorten: str = getattr(SQL, f"{table}_shorten")
        self._remove: str = getattr(SQL, f"{table}_remove")
        self._split: str = getattr(SQL, f"{table}_split")

    def cut(self, db: sqlite3.Connection, key: Key, first: int, last: int) -> None:
        """Take first to last out of the ranges under a key. All of them are there."""
        at = first
        while at <= last:
            row = db.execute(self._find, (*key, at)).fetchone()
            if row is None or row[1] > at:
                raise LookupError(f"{at} is in no range of {self._table} under {key}")
            end, begin = row
            self.take(db, [(key, begin, end, at, last)])
            at = end + 1

    def take(self, db: sqlite3.Connection, parts: Iterable[Part]) -> None:
        """Take parts out of rows that are known; those of one row one after the other."""
        splits: list[tuple[object, ...]] = []
        shorts: list[tuple[object, ...]] = []
        gone: list[tuple[object, ...]] = []
        known: set[int] = set()
        for key, begin, end, first, last in parts:
            if end in known:  # the row is not any more as it was found
                self._write(db, splits, shorts, gone)
                self.cut(db, key, first, last)
                continue
            known.add(end)
            if begin < first:
                splits.append((*key, end, first - 1))
            if last < end:
                shorts.append((*key, end, last + 1))
            else:
                gone.append((*key, end))
        self._write(db, splits, shorts, gone)

    def _write(self, db: sqlite3.Connection, *changes: list[tuple[object, ...]]) -> None:
        for statement, rows in zip((self._split, self._shorten, self._remove), changes, strict=True):
            if rows:
                db.executemany(statement, rows)
                rows.clear()


def ranges_of(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as (first, last)."""
    first = last = None
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        yield numbers[0], numbers[-1]  # nearly always; this way it costs next to nothing
        return
    for number in numbers:
        if last is not None and first is not None and number != last + 1:
            yield first, last
            first = number
        elif first is None:
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last
