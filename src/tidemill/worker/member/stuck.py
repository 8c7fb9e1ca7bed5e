"""Jobs that do not stop at their timeout.

Neither a thread nor a blocked loop can be stopped from outside. At its deadline the worker process tells
running code to stop. Code that still runs `after_s` later is stuck: only the end of its process frees its
slot, its lease and its permits. The worker process claims no more from then on. Its other runs get `grace_s`
to finish. Then the supervisor kills the process. If the stuck run ends by itself before that, the process
lives on.

Two clocks. Deadlines use the boot clock, which goes on while a machine is suspended. The waits `after_s` and
`grace_s` use the monotonic clock, which does not, and begin when we first saw a run past its deadline. After
an hour's suspend every job is past its timeout: those jobs too get their time to stop.
"""

from collections.abc import Sequence

from tidemill.model.jobs.job import Fence
from tidemill.worker.process.held_table import HeldRow

NONE_STUCK: frozenset[Fence] = frozenset()

_SECOND_NS = 1_000_000_000


class StuckWatch:
    """Watches one worker process for stuck runs."""

    def __init__(self, *, after_s: float, grace_s: float) -> None:
        self._after_ns = round(after_s * _SECOND_NS)
        self._grace_ns = round(grace_s * _SECOND_NS)
        self._late: dict[Fence, int] = {}
        """Runs past their deadline, with the moment at which we first saw that."""
        self._stuck_since_ns: int | None = None

    @property
    def waiting(self) -> bool:
        """A run is stuck, and the others have their grace."""
        return self._stuck_since_ns is not None

    def check(self, rows: Sequence[HeldRow], *, boot_ns: int, awake_ns: int) -> frozenset[Fence]:
        """The stuck runs for which the process must be killed now. Empty: not yet, or no run is stuck."""
        late = [row.fence for row in rows if row.started_ns and 0 < row.deadline_ns <= boot_ns]
        self._late = {fence: self._late.get(fence, awake_ns) for fence in late}
        stuck = frozenset(fence for fence, since in self._late.items() if awake_ns - since >= self._after_ns)
        if not stuck:
            self._stuck_since_ns = None
            return NONE_STUCK
        if self._stuck_since_ns is None:
            self._stuck_since_ns = awake_ns
        alone = len(stuck) == len(rows)
        return stuck if alone or awake_ns - self._stuck_since_ns >= self._grace_ns else NONE_STUCK
