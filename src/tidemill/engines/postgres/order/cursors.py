"""Up to which seq this process has claimed each lane.

A claim begins its search at the cursor. Without it, one long transaction elsewhere would slow every claim
down: dead index entries cannot be removed while it runs, and each claim would walk over all of them (30,000
jobs a second become 2,000). Cursors are memory only. A forgotten cursor costs one slow search, never a wrong
one.

A ready job below a cursor is found by `late_commits`, within a second. A second is long for a job that was
just about to commit. So a claim that found all there was moves its cursors only up to what had been drawn
`ON_THE_WAY_S` before.

A cursor is true for the server on which it was made. A server that crashed before it wrote everything to its
disk, or a replica that took over, may have jobs ready that were taken before, and may draw the same seqs
again. So a new connection forgets all cursors. The answer to a claim that was sent before moves no cursor:
its `generation` is an older one.
"""

import time
from collections import deque
from collections.abc import Sequence

from tidemill.model.queues.lane import PRIORITIES

QUEUES_KEPT = 1_000
LANES_KEPT = 1_000
"""How many lanes of a queue with groups are remembered: those that gave last."""
BUSY = 64
"""A lane with a group gets a cursor when it has given so many jobs. Before that its search is short."""

ON_THE_WAY_S = 0.1
"""An enqueue commits within this time after it has drawn its seq, unless a user's transaction contains it."""
BACK_S = 1.0
"""A cursor goes back for that by no more than this: after a full load the entries of a second are many."""
NOTES_APART_S = 0.005

WIDTH = 2 * len(PRIORITIES)
"""Cursors of a queue: for each priority that of the plain lane, then that of its suspects."""


class _QueueCursors:
    __slots__ = ("drained", "gave", "lanes", "plain", "settled")

    def __init__(self) -> None:
        self.plain = [0] * WIDTH
        self.gave: set[str] = set()
        """The lanes with a group that have given since quiet lanes were last forgotten."""
        self.drained: deque[tuple[float, int]] = deque()
        """When a claim found all there was, and the last seq drawn before that claim."""
        self.settled: tuple[float, int] | None = None
        """The newest of these that is older than `ON_THE_WAY_S`."""
        self.lanes: dict[str, tuple[int, int]] = {}
        """"priority:group" -> (cursor, jobs given)"""


class Cursors:
    """The cursors of one process, by queue."""

    def __init__(self) -> None:
        self._queues: dict[str, _QueueCursors] = {}
        self.generation = 0
        """Grows whenever everything is forgotten."""

    def forget(self) -> None:
        """The server may not be the same any more."""
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
        """A job was taken: claims have passed everything before it in its lane."""
        known = self._queue(queue)
        if lane:
            if not suspect:
                name = f"{priority}:{lane}"
                before, given = known.lanes.pop(name, (0, 0))  # the lane used last comes last
                known.lanes[name] = max(before, seq + 1), given + 1
                known.gave.add(name)
                if len(known.lanes) > LANES_KEPT:
                    del known.lanes[next(iter(known.lanes))]
            return
        at = 2 * priority + suspect
        if seq >= known.plain[at]:
            known.plain[at] = seq + 1

    def exhausted(self, queue: str, seen: int, at: float | None = None) -> None:
        """A claim found all that the plain lanes had. `seen` is the last seq drawn before it, `at` the time
        on this process's clock."""
        known = self._queue(queue)
        at = time.monotonic() if at is None else at
        if not known.drained or at - known.drained[-1][0] >= NOTES_APART_S:
            known.drained.append((at, seen))
        while known.drained and at - known.drained[0][0] >= ON_THE_WAY_S:
            known.settled = known.drained.popleft()
        if known.settled is None:
            return
        since, settled = known.settled
        for lane in range(0, WIDTH, 2):
            if known.plain[lane] <= settled or at - since <= BACK_S:
                known.plain[lane] = settled + 1

    def names(self) -> list[str]:
        """The queues with cursors."""
        return list(self._queues)

    def forget_quiet_lanes(self) -> None:
        """Forget the cursors of lanes with a group that have given nothing since the last call. The next
        claims search them from their start; a lane that is found empty is closed."""
        for queue in self._queues.values():
            queue.lanes = {name: lane for name, lane in queue.lanes.items() if name in queue.gave}
            queue.gave.clear()

    def _queue(self, name: str) -> _QueueCursors:
        known = self._queues.pop(name, None)
        if known is None:
            known = _QueueCursors()
            if len(self._queues) >= QUEUES_KEPT:
                del self._queues[next(iter(self._queues))]
        self._queues[name] = known
        return known
