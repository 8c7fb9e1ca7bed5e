"""Jobs that do not stop at their timeout.

A thread cannot be stopped from outside, nor can a loop that is blocked. The worker process tells running code
to stop at its deadline. What is still there `after_s` later is stuck, and only the end of its process will
free its slot, its lease and its permits. The worker process takes no more from then on; its other runs get
`grace_s` to finish; then the supervisor kills it. A stuck run that ends by itself meanwhile saves its
process.

Two clocks. Deadlines are of the boot clock, which goes on while a machine is suspended; patience is measured
by the monotonic one, which does not, and only from the moment at which we saw a run past its deadline. A
machine that wakes up after an hour finds every job past its timeout: they too get their time to stop.
"""

from collections.abc import Sequence

from tidemill.model.jobs.job import Fence
from tidemill.worker.process.held_table import HeldRow

NOBODY: frozenset[Fence] = frozenset()

_SECOND_NS = 1_000_000_000


class StuckWatch:
    """The patience with one worker process."""

    def __init__(self, *, after_s: float, grace_s: float) -> None:
        self._after_ns = round(after_s * _SECOND_NS)
        self._grace_ns = round(grace_s * _SECOND_NS)
        self._late: dict[Fence, int] = {}
        """Runs past their deadline, and since when we have seen that."""
        self._stuck_since_ns: int | None = None

    @property
    def waiting(self) -> bool:
        """Something is stuck, and the others have their grace."""
        return self._stuck_since_ns is not None

    def look(self, rows: Sequence[HeldRow], *, boot_ns: int, awake_ns: int) -> frozenset[Fence]:
        """The stuck runs for which the process must be killed now; nobody: not yet, or none is stuck."""
        late = [row.fence for row in rows if row.started_ns and 0 < row.deadline_ns <= boot_ns]
        self._late = {fence: self._late.get(fence, awake_ns) for fence in late}
        stuck = frozenset(fence for fence, since in self._late.items() if awake_ns - since >= self._after_ns)
        if not stuck:
            self._stuck_since_ns = None
            return NOBODY
        if self._stuck_since_ns is None:
            self._stuck_since_ns = awake_ns
        alone = len(stuck) == len(rows)
        return stuck if alone or awake_ns - self._stuck_since_ns >= self._grace_ns else NOBODY
