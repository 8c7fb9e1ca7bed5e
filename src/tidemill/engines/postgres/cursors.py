"""Up to which seq this process has claimed each lane.

A claim starts its scan there: with one long transaction elsewhere, which keeps dead index entries from being
removed, every claim would otherwise walk over all of them (30,000 jobs a second become 2,000). It is memory
only. A forgotten cursor costs one slow scan, never a wrong one; `looks` finds what stands behind a cursor.

That takes up to a second, which is long for a job that was only on its way to its commit when a claim looked.
So a claim that found all there was moves its cursors no further than to what had been drawn `ON_THE_WAY_S`
before.

What was seen holds for the server that it was seen on. One that crashed without having written everything
to its disk, or a replica that took over, may have jobs ready that were taken before, and may draw seqs a
second time. So everything is forgotten with another connection; a claim that was sent before that moves no
cursor any more (`generation`).
"""

import time
from collections import deque
from collections.abc import Sequence

from tidemill.model.lane import PRIORITIES

QUEUES_KEPT = 1_000
LANES_KEPT = 1_000
"""Of a queue with groups, the lanes that gave last."""
BUSY = 64
"""A lane with a group has a cursor once it has given so many jobs; before, its scan is short."""

ON_THE_WAY_S = 0.1
"""An enqueue that has drawn its seq has committed by then, but for users' transactions."""
BACK_S = 1.0
"""The furthest that cursors go back for that: after a full load the entries of a second are many."""
LOOKS_APART_S = 0.005

WIDTH = 2 * len(PRIORITIES)
"""Cursors of a queue: for each priority that of the plain lane, then that of its suspects."""


class _Queue:
    __slots__ = ("gave", "lanes", "looks", "plain", "settled")

    def __init__(self) -> None:
        self.plain = [0] * WIDTH
        self.gave: set[str] = set()
        """The lanes with a group that have given since quiet ones were forgotten."""
        self.looks: deque[tuple[float, int]] = deque()
        """When everything was found, and the last seq drawn before that."""
        self.settled: tuple[float, int] | None = None
        """The newest of these that is old enough."""
        self.lanes: dict[str, tuple[int, int]] = {}
        """"priority:group" -> (cursor, jobs given)"""


class Cursors:
    """The cursors of one process, by queue."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self.generation = 0
        """Grows whenever everything is forgotten."""

    def forget(self) -> None:
        """What was seen may not be so any more."""
        self._queues.clear()
        self.generation += 1

    def plain(self, queues: Sequence[str]) -> list[int]:
        """`WIDTH` cursors for each of these queues."""
        found: list[int] = []
        for name in queues:
            queue = self._queues.get(name)
            found += queue.plain if queue is not None else [0] * WIDTH
        return found

    def busy(self, queue: str) -> dict[str, int]:
        """The cursors of busy lanes with a group."""
        known = self._queues.get(queue)
        if known is None or not known.lanes:
            return {}
        return {lane: seq for lane, (seq, given) in known.lanes.items() if given >= BUSY}

    def taken(self, queue: str, priority: int, suspect: bool, lane: str, seq: int) -> None:
        """A job was taken; everything before it in its lane has been seen."""
        known = self._queue(queue)
        if lane:
            if not suspect:
                name = f"{priority}:{lane}"
                before, given = known.lanes.pop(name, (0, 0))  # the one used last stands last
                known.lanes[name] = max(before, seq + 1), given + 1
                known.gave.add(name)
                if len(known.lanes) > LANES_KEPT:
                    del known.lanes[next(iter(known.lanes))]
            return
        place = 2 * priority + suspect
        if seq >= known.plain[place]:
            known.plain[place] = seq + 1

    def exhausted(self, queue: str, seen: int, at: float | None = None) -> None:
        """A look found all that the plain lanes had; the seq `seen` had been drawn before it. `at` is this
        process's clock."""
        known = self._queue(queue)
        at = time.monotonic() if at is None else at
        if not known.looks or at - known.looks[-1][0] >= LOOKS_APART_S:
            known.looks.append((at, seen))
        while known.looks and at - known.looks[0][0] >= ON_THE_WAY_S:
            known.settled = known.looks.popleft()
        if known.settled is None:
            return
        since, settled = known.settled
        for place in range(0, WIDTH, 2):
            if known.plain[place] <= settled or at - since <= BACK_S:
                known.plain[place] = settled + 1

    def names(self) -> list[str]:
        """The queues with cursors."""
        return list(self._queues)

    def forget_quiet_lanes(self) -> None:
        """The next claims scan lanes with a group that have given nothing since the last call from their
        start: one that is found empty is closed."""
        for queue in self._queues.values():
            queue.lanes = {name: lane for name, lane in queue.lanes.items() if name in queue.gave}
            queue.gave.clear()

    def _queue(self, name: str) -> _Queue:
        known = self._queues.pop(name, None)
        if known is None:
            known = _Queue()
            if len(self._queues) >= QUEUES_KEPT:
                del self._queues[next(iter(self._queues))]
        self._queues[name] = known
        return known
