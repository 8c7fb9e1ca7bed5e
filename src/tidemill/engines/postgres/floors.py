"""Up to which seq this process has looked behind its cursors.

Below the floor of a lane nothing is ready that a claim has passed, but for jobs whose transactions were
still open then. Looks go on from there, so their cost depends on what was taken since, not on all that was
ever ready: beside a snapshot that somebody holds, index entries of all of it are still there.

    0 ......... old ......... floor ..... cursor ..... the last seq drawn
    walked now and then       new: the    where claims begin
                              next look

What could be wrong about a floor (a crash that undid claims, behind a pooler that told nobody) is found by
walking what is below it, a little at each look, from time to time: `old`. A lane that is looked at for the
first time has its last `RECENT` seqs walked as new: what claims passed before that look is among them. The
rest is old.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.engines.postgres.cursors import Cursors
from tidemill.model.lane import PRIORITIES

RECENT = 1_000_000


class Lane(NamedTuple):
    """What has a cursor."""

    queue: str
    priority: int
    group: str


class Stretch(NamedTuple):
    """Seqs of one lane, from one to before another."""

    lane: Lane
    begin: int
    end: int


class Floors:
    """The floors of one process."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self._floors: dict[Lane, int] = {}
        self._old: dict[Lane, int] = {}
        """Up to where lanes that are to be walked from their start were walked."""
        self._waiting: set[Lane] = set()
        """Those for which the last look had no time."""

    def new(self) -> list[Stretch]:
        """Where claims went since the last look. Lanes without a cursor have no floor."""
        floors: dict[Lane, int] = {}
        stretches = []
        for lane, cursor in self._lanes():
            floor = self._floors.get(lane)
            if floor is None:
                floor = max(0, cursor - RECENT)
                if floor > 0:
                    self._old[lane] = 0
            floors[lane] = floor = min(floor, cursor)  # a cursor may have gone back
            if floor < cursor:
                stretches.append(Stretch(lane, floor, cursor))
        self._floors = floors
        self._old = {lane: seq for lane, seq in self._old.items() if lane in floors}
        return sorted(stretches, key=lambda stretch: stretch.lane not in self._waiting)

    def old(self) -> list[Stretch]:
        """What is left to walk below the floors."""
        return [
            Stretch(lane, begin, floor)
            for lane, begin in self._old.items()
            if (floor := self._floors[lane]) > begin
        ]

    def look_again(self) -> None:
        """Everything is to be walked once more. What is under way goes on: begun anew each time, a long walk
        would never come to its end."""
        self._old.update({lane: 0 for lane in self._floors if lane not in self._old})

    def rise(self, stretches: Sequence[Stretch], reached: Sequence[int]) -> None:
        """New stretches were walked up to there."""
        self._waiting = {each.lane for each, seq in zip(stretches, reached, strict=True) if seq == each.begin}
        for stretch, seq in zip(stretches, reached, strict=True):
            if stretch.lane in self._floors:
                self._floors[stretch.lane] = seq

    def walked(self, stretches: Sequence[Stretch], reached: Sequence[int]) -> None:
        """Old stretches were; those that have not had their turn come first."""
        for stretch, seq in zip(stretches, reached, strict=True):
            if seq >= stretch.end:
                self._old.pop(stretch.lane, None)
            elif seq > stretch.begin:
                self._old.pop(stretch.lane, None)
                self._old[stretch.lane] = seq

    def forget(self) -> None:
        """Nothing was looked at."""
        self._floors.clear()
        self._old.clear()

    def _lanes(self) -> list[tuple[Lane, int]]:
        found = []
        for queue in self._cursors.names():
            plain = self._cursors.plain([queue])
            found += [
                (Lane(queue, priority, ""), plain[2 * priority])
                for priority in PRIORITIES
                if plain[2 * priority] > 0
            ]
            for name, cursor in self._cursors.busy(queue).items():
                priority, _, group = name.partition(":")
                found.append((Lane(queue, int(priority), group), cursor))
        return found
