"""How many processes a worker may have: a number, or from a least to a most."""

import re
from typing import NamedTuple

from tidemill.model.errors import BadInput

MOST_PROCESSES = 1_000
FORMS = (
    f"a whole number or MIN..MAX, each between 1 and {MOST_PROCESSES:,} and MIN not above MAX, "
    "such as 4 or 1..4"
)

_WRITTEN = re.compile(r"\s*(\d{1,9})\s*(?:\.\.\s*(\d{1,9})\s*)?")


class ProcessRange(NamedTuple):
    """From `least` to `most` processes. Both alike: always so many."""

    least: int
    most: int

    @classmethod
    def parse(cls, value: object) -> "ProcessRange":
        """Read `4`, `"4"` or `"1..4"`, or refuse it with `BadInput`."""
        if isinstance(value, ProcessRange):
            return value
        written = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        found = _WRITTEN.fullmatch(written)
        if found is None:
            raise BadInput(FORMS)
        least = int(found[1])
        most = int(found[2] or found[1])
        if not 1 <= least <= most <= MOST_PROCESSES:
            raise BadInput(FORMS)
        return cls(least, most)

    @property
    def varies(self) -> bool:
        return self.least != self.most

    def clip(self, number: int) -> int:
        """The nearest number that is allowed."""
        return max(self.least, min(self.most, number))

    def __str__(self) -> str:
        return f"{self.least}..{self.most}" if self.varies else str(self.least)
