"""The slots of a worker: what runs now, what waits for a slot, and what can do neither.

At most `count` runs are active. A run that comes while all slots are taken waits in the buffer, unless its
job is under a limit or a suspect: then it is released at once. A slot that becomes free goes to the most
urgent run that waits.

Nothing begins unless the lease is fresh: the engine has received a heartbeat of this member within one lease,
by the boot clock. After an outage or a suspend others may have been given our jobs. What waits here then
waits for the next answered heartbeat, which says what is still ours.
"""

from collections.abc import Callable

from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.run import ReleaseReason
from tidemill.worker.claiming.buffer import Ahead, Buffer
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.run import Run


class Slots:
    """Decides which runs begin."""

    def __init__(
        self,
        count: int,
        held_table: HeldTable,
        lease_s: float,
        active: dict[Fence, Run],
        *,
        begin: Callable[[Run], None],
        release: Callable[[Run, ReleaseReason | None], None],
    ) -> None:
        self.count = count
        self.active = active
        self.buffer = Buffer()
        self.ahead = Ahead(count)
        self.closed = False
        """Nothing begins any more: drained, or ended."""
        self._held_table = held_table
        self._lease_ns = round(lease_s * 1e9)
        self._fresh_until_ns = 0
        self._begin = begin
        self._release = release
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
        """Whether the lease is fresh. The held table is read only when the lease that it last showed is over:
        a lease is only ever prolonged."""
        if now_ns > self._fresh_until_ns:
            self._fresh_until_ns = self._held_table.heartbeat_ns + self._lease_ns
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
        """Nothing begins any more. What waits is released."""
        self.closed = True
        for run in self.buffer.empty():
            self._release(run, "drain")

    def shut(self) -> None:
        """The worker has ended. What waits must not begin. It is not released either: no trip would carry
        that to the engine, and if the claimant was retired others have those jobs already."""
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
        """There are more runs than slots. Those that cannot wait come first. Of these a suspect comes last,
        because releasing it costs no permit."""
        urgent = [run for run in runs if self._cannot_wait(run)]
        urgent.sort(key=lambda run: run.job.suspect and not run.job.limited)
        others = [run for run in runs if not self._cannot_wait(run)]
        for run in urgent[able:]:
            self._release(run, "drain" if self.closed else None)
        left = max(0, able - len(urgent))
        self.buffer.add(others[left:])
        return [*urgent[:able], *others[:left]]

    def _cannot_wait(self, run: Run) -> bool:
        return self.closed or run.job.limited or run.job.suspect

    def _fill(self, runs: list[Run]) -> None:
        """Begin these. A run whose payload is bad ends before this returns. Its slot is filled by `refill`
        and not from within, or a thousand such jobs would nest a thousand calls."""
        self._filling = True
        begin, active = self._begin, self.active
        for run in runs:
            active[run.fence] = run
            run.slots = self
            begin(run)
        self._filling = False
