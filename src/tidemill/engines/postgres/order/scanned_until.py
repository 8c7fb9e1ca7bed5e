"""Up to which seq this process has scanned each lane for jobs that its claims have passed.

Claims of this process begin at a lane's cursor. A scan reads below it, for ready jobs that claims have
passed. Below `scanned until` a scan has found all of them, except jobs whose transactions were still open:
`late_commits` asks for those by transaction. So the next scan begins at `scanned until`, and costs what was
taken since the last one, not all that was ever ready. (While a transaction holds a snapshot, the index
entries of all of it are still there.)

    0 ............ old ............ scanned until ...... new ...... cursor ...... the last seq drawn
    scanned again now and then     the next scan                    claims begin here

`scanned until` can be wrong after a crash that undid claims, if a pooler hid the crash. So what is below it
is scanned again from time to time, a little with each scan: these are the old ranges. A lane that is scanned
for the first time has its last `RECENT` seqs scanned as new, because jobs that claims passed before are among
them. The rest is old.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.engines.postgres.order.cursors import Cursors
from tidemill.model.queues.lane import PRIORITIES

RECENT = 1_000_000


class ScannedLane(NamedTuple):
    """A lane that has a cursor."""

    queue: str
    priority: int
    group: str


class SeqRange(NamedTuple):
    """Seqs of one lane, from `begin` to before `end`."""

    lane: ScannedLane
    begin: int
    end: int


class ScannedUntil:
    """How far the scans of one process have come, by lane."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self._until: dict[ScannedLane, int] = {}
        self._old: dict[ScannedLane, int] = {}
        """Lanes that are being scanned again from their start, and how far."""
        self._waiting: set[ScannedLane] = set()
        """Lanes for which the last scan had no time."""

    def new(self) -> list[SeqRange]:
        """What claims have passed since the last scan. Lanes that had to wait come first; a lane without a
        cursor is forgotten."""
        until: dict[ScannedLane, int] = {}
        ranges = []
        for lane, cursor in self._lanes():
            begin = self._until.get(lane)
            if begin is None:
                begin = max(0, cursor - RECENT)
                if begin > 0:
                    self._old[lane] = 0
            until[lane] = begin = min(begin, cursor)  # a cursor may have gone back
            if begin < cursor:
                ranges.append(SeqRange(lane, begin, cursor))
        self._until = until
        self._old = {lane: seq for lane, seq in self._old.items() if lane in until}
        return sorted(ranges, key=lambda each: each.lane not in self._waiting)

    def old(self) -> list[SeqRange]:
        """What is left to scan again."""
        return [
            SeqRange(lane, begin, until)
            for lane, begin in self._old.items()
            if (until := self._until[lane]) > begin
        ]

    def scan_again(self) -> None:
        """Every lane is scanned again from its start. A lane that is being scanned again goes on where it is:
        started over each time, a long scan would never end."""
        self._old.update({lane: 0 for lane in self._until if lane not in self._old})

    def scanned_new(self, ranges: Sequence[SeqRange], reached: Sequence[int]) -> None:
        """New ranges were scanned up to these seqs."""
        self._waiting = {each.lane for each, seq in zip(ranges, reached, strict=True) if seq == each.begin}
        for each, seq in zip(ranges, reached, strict=True):
            if each.lane in self._until:
                self._until[each.lane] = seq

    def scanned_old(self, ranges: Sequence[SeqRange], reached: Sequence[int]) -> None:
        """Old ranges were scanned up to these seqs. Lanes that have not had their turn come first next
        time."""
        for each, seq in zip(ranges, reached, strict=True):
            if seq >= each.end:
                self._old.pop(each.lane, None)
            elif seq > each.begin:
                self._old.pop(each.lane, None)
                self._old[each.lane] = seq

    def forget(self) -> None:
        """Nothing counts as scanned."""
        self._until.clear()
        self._old.clear()

    def _lanes(self) -> list[tuple[ScannedLane, int]]:
        found = []
        for queue in self._cursors.names():
            plain = self._cursors.plain([queue])
            found += [
                (ScannedLane(queue, priority, ""), plain[2 * priority])
                for priority in PRIORITIES
                if plain[2 * priority] > 0
            ]
            for name, cursor in self._cursors.busy(queue).items():
                priority, _, group = name.partition(":")
                found.append((ScannedLane(queue, int(priority), group), cursor))
        return found
