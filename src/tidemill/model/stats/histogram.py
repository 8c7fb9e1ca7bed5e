"""A histogram of lengths of time in fixed buckets, and what is read off it.

There are 44 buckets. The first one ends at 1 ms, and the end of each is 1.5 times that of the one before. The
43rd ends at 1.5**42 ms, which is almost 7 hours. The last has no end; what falls into it counts as up to 10
hours (1.5**43 ms).

**The error.** Inside a bucket the lengths are not known. `percentile` answers the geometric mean of the two
ends of the bucket that has the length asked for. So between 1 ms and 10 hours the true length lies between
1/1.225 and 1.225 times the answer (1.225 is the root of 1.5): the answer is at most 22.5% off. Below 1 ms the
answer is 1 ms, above 10 hours it is about 8 hours.

**Packed.** The two histograms of a row travel and are stored as one list of whole numbers, one for each
bucket that is not empty: `count * 128 + cell`. A cell is the number of a bucket of waiting times, or 44 more
for one of run times. Packed histograms are added by adding the counts of equal cells.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import TypeAlias

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.time import MILLISECOND, Span

BUCKETS = 44
GROWTH = 1.5
ENDS: tuple[Span, ...] = tuple(round(MILLISECOND * GROWTH**n) for n in range(BUCKETS - 1))
"""The longest length that each bucket but the last takes."""
ERROR = GROWTH**0.5
"""How many times longer or shorter the true length may be than a percentile says."""

CELLS = 2 * BUCKETS
RUN = BUCKETS
"""The cell of the first bucket of run times."""
CELL_BITS = 7
COUNT_LIMIT = 1 << 40
"""The most that one cell of a batch may count: sums stay exact in every store."""

Packed: TypeAlias = tuple[int, ...]
Counts: TypeAlias = Mapping[int, int]
"""How many lengths there are in each bucket, or each cell, that has some."""


def bucket_of(length: Span) -> int:
    """The bucket of a length. (`bisect_left(ENDS, length)`, which hot code calls itself.)"""
    return bisect_left(ENDS, length)


class Histogram(msgspec.Struct, frozen=True):
    """How many lengths there are in each bucket."""

    counts: Mapping[int, int] = {}
    """By number of the bucket; empty ones are left out."""

    @property
    def count(self) -> int:
        """How many lengths there are."""
        return sum(self.counts.values())

    def percentile(self, share: float) -> Span | None:
        """The length that this share (0 to 1) of all lengths does not exceed: about, see above. None: there
        are no lengths."""
        if not 0 <= share <= 1:
            raise BadInput(f"a percentile is asked for by a share from 0 to 1 (0.95 for p95), not {share!r}")
        rank, passed = max(1, ceil(share * self.count)), 0
        for bucket in sorted(self.counts):
            passed += self.counts[bucket]
            if passed >= rank:
                return _middle_of(bucket)
        return None

    def __add__(self, other: "Histogram") -> "Histogram":
        sums = dict(self.counts)
        for bucket, count in other.counts.items():
            sums[bucket] = sums.get(bucket, 0) + count
        return Histogram(sums)


def histogram_of(lengths: Iterable[Span]) -> Histogram:
    """The histogram of these."""
    counts: dict[int, int] = {}
    for length in lengths:
        bucket = bucket_of(length)
        counts[bucket] = counts.get(bucket, 0) + 1
    return Histogram(counts)


def _middle_of(bucket: int) -> Span:
    return round(MILLISECOND * GROWTH ** (bucket - 0.5)) if bucket else MILLISECOND


# Packed


def pack(cells: Counts) -> Packed:
    """Counts by cell, packed."""
    return tuple(cells[cell] << CELL_BITS | cell for cell in sorted(cells) if cells[cell])


def pack_both(wait: Histogram, run: Histogram) -> Packed:
    """Both histograms of a row."""
    return pack({**wait.counts, **{RUN + bucket: count for bucket, count in run.counts.items()}})


def unpack(packed: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Each cell with its count."""
    mask = (1 << CELL_BITS) - 1
    return ((number & mask, number >> CELL_BITS) for number in packed)


def add_packed(*several: Iterable[int]) -> Packed:
    """The sum of packed histograms."""
    sums: dict[int, int] = {}
    for packed in several:
        add_into(sums, packed)
    return pack(sums)


def add_into(cells: dict[int, int], packed: Iterable[int]) -> None:
    """Add packed histograms to counts by cell."""
    for cell, count in unpack(packed):
        cells[cell] = cells.get(cell, 0) + count


def wait_of(cells: Counts) -> Histogram:
    """The waiting times among these cells."""
    return Histogram({cell: count for cell, count in cells.items() if cell < RUN})


def run_of(cells: Counts) -> Histogram:
    """The run times among these cells."""
    return Histogram({cell - RUN: count for cell, count in cells.items() if cell >= RUN})


def check_packed(packed: object) -> None:
    """Refuse what is no packed histogram."""
    if not isinstance(packed, tuple) or len(packed) > CELLS:
        raise BadInput(f"packed histograms are a tuple of at most {CELLS} numbers, not {packed!r:.80}")
    for number in packed:
        if type(number) is not int or not 0 < number >> CELL_BITS < COUNT_LIMIT:
            raise BadInput(f"a number of a packed histogram is count * 128 + cell, not {number!r:.80}")
    cells = [cell for cell, _ in unpack(packed)]
    if any(cell >= CELLS for cell in cells) or len(set(cells)) != len(cells):
        raise BadInput(f"a packed histogram has each of the cells 0 to {CELLS - 1} at most once, not {cells}")
