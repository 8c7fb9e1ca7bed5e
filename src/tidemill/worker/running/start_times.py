"""Runs under a rate start at the moment that their claim says, or not at all.

They wait here, in their slot, with their arguments decoded: a timer of the loop lets the next ones begin. A
runner checks (`Run.late`) as the last thing before it calls the function: what is late then is released. Its
permit stands for an earlier moment, and is lost.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from tidemill.engine.boot import boot_ns
from tidemill.worker.running.run import Run


class StartTimes:
    """Begins runs at their moments. On the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[int, int, Run, Callable[[Run], None]]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0

    def begin(self, run: Run, begin: Callable[[Run], None]) -> None:
        """Call `begin` with it at its moment, in the order in which runs of the same moment came."""
        now_ns = boot_ns()
        if run.start_ns <= now_ns and not self._waiting:
            begin(run)
            return
        self._count += 1
        heappush(self._waiting, (run.start_ns, self._count, run, begin))
        self._arm(now_ns)

    def _arm(self, now_ns: int) -> None:
        first_ns = self._waiting[0][0]
        if self._timer is not None:
            if self._timer_ns <= first_ns:
                return
            self._timer.cancel()
        self._timer_ns = first_ns
        self._timer = self._loop.call_later(max(0, first_ns - now_ns) / 1e9, self._due)

    def _due(self) -> None:
        self._timer, waiting = None, self._waiting
        while waiting and waiting[0][0] <= boot_ns():
            _, _, run, begin = heappop(waiting)
            begin(run)
        if waiting and self._timer is None:
            self._arm(boot_ns())
