"""The slots of a worker: what runs now, what waits for a slot, and what can do neither.

At most `count` runs are active. A run that comes while all slots are taken waits in the buffer, unless its
job is under a limit or a suspect: then it is given back at once. A slot that becomes free goes to the most
urgent run that waits.

Nothing begins unless the lease is fresh: the engine has heard of this member within one lease, by the boot
clock. After an outage or a suspended machine others may have been given our jobs; what waits here then waits
for the next good heartbeat, which says what is still ours.
"""

from collections.abc import Callable

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.job import Fence
from tidemill.worker.claiming.buffer import Ahead, Buffer
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.run import Run


class Slots:
    """Who may run."""

    def __init__(
        self,
        count: int,
        board: HeldTable,
        lease_s: float,
        active: dict[Fence, Run],
        *,
        begin: Callable[[Run], None],
        give_back: Callable[[Run], None],
    ) -> None:
        self.count = count
        self.active = active
        self.buffer = Buffer()
        self.ahead = Ahead(count)
        self.closed = False
        """Nothing begins any more: drained, or ended."""
        self._board = board
        self._lease_ns = round(lease_s * 1e9)
        self._fresh_until_ns = 0
        self._begin = begin
        self._give_back = give_back
        self._filling = False
        self._emptied: Callable[[], None] | None = None

    @property
    def free(self) -> int:
        """Slots that nothing runs in or waits for."""
        return max(0, self.count - len(self.active) - len(self.buffer))

    @property
    def room_ahead(self) -> int:
        """How many may be claimed beyond the free slots."""
        over = max(0, len(self.active) + len(self.buffer) - self.count)
        return max(0, self.ahead.limit - over)

    def fresh(self, now_ns: int) -> bool:
        """Whether the lease holds. The board is read only when what it last said is over: a lease only
        ever grows longer."""
        if now_ns > self._fresh_until_ns:
            self._fresh_until_ns = self._board.heartbeat_ns + self._lease_ns
        return now_ns <= self._fresh_until_ns

    def admit(self, runs: list[Run]) -> None:
        """These were claimed, in the order in which they should start."""
        now_ns = boot_ns()
        able = 0 if self.closed or not self.fresh(now_ns) else self.free
        self._fill(runs if len(runs) <= able else self._sort_out(runs, able))
        if self.buffer:
            self.refill(now_ns)

    def leave(self, run: Run, now_ns: int) -> None:
        """A run ended: its slot goes to the next."""
        del self.active[run.fence]
        if self.buffer and not self._filling:
            self.refill(now_ns)
        if self._emptied is not None and not self.active:
            self._emptied()

    def refill(self, now_ns: int) -> None:
        """Let what waits begin, as far as there are slots."""
        buffer, active, count = self.buffer, self.active, self.count
        if self.closed or not self.fresh(now_ns):
            return
        self._filling = True
        while buffer and len(active) < count:
            run = buffer.pop()
            active[run.fence] = run
            run.slots = self
            self._begin(run)
        self._filling = False

    def close(self) -> None:
        """Nothing begins any more; what waits is given back."""
        self.closed = True
        for run in self.buffer.empty():
            self._give_back(run)

    def shut(self) -> None:
        """The worker has ended. What waits is not given back: nobody would carry it to the engine, and of
        a claimant that was retired others have it already. What it must not do is begin."""
        self.closed = True
        self.buffer.empty()

    def when_empty(self, call: Callable[[], None]) -> None:
        """Call this once, when nothing runs any more: now, or when the last run leaves. For slots that are
        shut."""
        if self.active:
            self._emptied = call
        else:
            call()

    def of_queue(self, queue: str) -> int:
        """How many of one queue run or wait here."""
        return sum(run.job.queue == queue for run in self.active.values()) + self.buffer.of_queue(queue)

    def _sort_out(self, runs: list[Run], able: int) -> list[Run]:
        """More than there are slots: those that cannot wait come first. Of these a suspect comes last,
        because it costs no permit to give it back."""
        urgent = [run for run in runs if self._cannot_wait(run)]
        urgent.sort(key=lambda run: run.job.suspect and not run.job.limited)
        others = [run for run in runs if not self._cannot_wait(run)]
        for run in urgent[able:]:
            self._give_back(run)
        left = max(0, able - len(urgent))
        self.buffer.add(others[left:])
        return [*urgent[:able], *others[:left]]

    def _cannot_wait(self, run: Run) -> bool:
        return self.closed or run.job.limited or run.job.suspect

    def _fill(self, runs: list[Run]) -> None:
        """Begin these. One whose payload is bad ends before this returns: its slot is filled by
        `refill` and not from within, or a thousand such jobs would nest a thousand calls."""
        self._filling = True
        begin, active = self._begin, self.active
        for run in runs:
            active[run.fence] = run
            run.slots = self
            begin(run)
        self._filling = False
