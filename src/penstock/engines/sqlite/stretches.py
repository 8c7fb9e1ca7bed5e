"""Stretches: rows that stand for consecutive jobs, from `first` to `last`.

Jobs that are enqueued together are mostly claimed together and settled together. As a stretch they are
one row in the order of their lane, one among the runs and one among the ended, whatever their number;
apart they are a row each, as they would be anyway. A row is keyed by its last: what is taken from the
front, as claims do, changes no key.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from penstock.engine.statements import load_statements

SQL = load_statements(__package__, "stretches")


class Stretches:
    """One table of stretches."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._find: str = getattr(SQL, f"{table}_find")
        self._shorten: str = getattr(SQL, f"{table}_shorten")
        self._remove: str = getattr(SQL, f"{table}_remove")
        self._split: str = getattr(SQL, f"{table}_split")

    def cut(self, db: sqlite3.Connection, key: tuple[object, ...], first: int, last: int) -> None:
        """Take first to last out of the stretches under a key. All of them are there."""
        at = first
        while at <= last:
            row = db.execute(self._find, (*key, at)).fetchone()
            if row is None or row[1] > at:
                raise LookupError(f"{at} is in no stretch of {self._table} under {key}")
            end, begin = row
            self.take(db, key, (begin, end), at, last)
            at = end + 1

    def take(
        self, db: sqlite3.Connection, key: tuple[object, ...], row: tuple[int, int], first: int, last: int
    ) -> None:
        """Take what lies from first to last out of this row."""
        begin, end = row
        if begin < first:
            db.execute(self._split, (*key, end, first - 1))
        if last < end:
            db.execute(self._shorten, (*key, end, last + 1))
        else:
            db.execute(self._remove, (*key, end))


def stretches_of(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
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
