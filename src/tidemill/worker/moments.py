"""Counts what has happened so far, and lets tests wait for it: tests wait for facts, not for time.

Counting is always on (an addition). Waiting costs only those who wait.
"""

import asyncio
from collections import Counter
from typing import Literal

Moment = Literal[
    "published",
    "claimed",
    "settled",
    "released",
    "refused",
    "not granted",
    "retried",
    "stuck",
    "idle",
    "drained",
]
"""published: the engine knows tasks, queues and schedules. claimed: jobs came. settled, released: the engine
has answered. refused: outcomes that came too late.
not granted: a claim was refused. retried: a call to the engine is made again. stuck: a job does not stop.
idle: a claim found nothing and nothing runs. drained: the end."""


class Moments:
    """Counts of one worker. Noted and awaited on its loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._waiting: list[tuple[Moment, int, asyncio.Future[None]]] = []

    def count(self, moment: Moment) -> int:
        """How often so far."""
        return self._counts[moment]

    def note(self, moment: Moment, times: int = 1) -> None:
        """This happened."""
        self._counts[moment] += times
        if self._waiting:
            self._wake_waiters()

    async def reached(self, moment: Moment, times: int = 1) -> None:
        """Wait until it has happened this often, counted from the beginning."""
        if self._counts[moment] < times:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append((moment, times, waiter))
            await waiter

    async def next(self, moment: Moment) -> None:
        """Wait until it happens once more."""
        await self.reached(moment, self._counts[moment] + 1)

    def _wake_waiters(self) -> None:
        still = []
        for moment, times, waiter in self._waiting:
            if waiter.done():  # the waiting task was cancelled
                continue
            if self._counts[moment] >= times:
                waiter.set_result(None)
            else:
                still.append((moment, times, waiter))
        self._waiting = still
