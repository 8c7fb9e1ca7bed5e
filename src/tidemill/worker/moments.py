"""What has happened so far, counted, and awaitable: tests wait for facts, not for time.

Counting is always on (an addition); waiting costs only those who wait."""

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
idle: a look found nothing and nothing runs. drained: the end."""


class Moments:
    """Counts of one worker. Noted and awaited on its loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._waiting: list[tuple[Moment, int, asyncio.Future[None]]] = []

    def count(self, moment: Moment) -> int:
        """How often so far."""
        return self._counts[moment]

    def note(self, moment: Moment, times: int = 1) -> None:
        """It happened."""
        self._counts[moment] += times
        if self._waiting:
            self._tell()

    async def reached(self, moment: Moment, times: int = 1) -> None:
        """Wait until it has happened this often, counted from the beginning."""
        if self._counts[moment] < times:
            told = asyncio.get_running_loop().create_future()
            self._waiting.append((moment, times, told))
            await told

    async def next(self, moment: Moment) -> None:
        """Wait until it happens once more."""
        await self.reached(moment, self._counts[moment] + 1)

    def _tell(self) -> None:
        still = []
        for moment, times, told in self._waiting:
            if told.done():  # whoever waited was cancelled
                continue
            if self._counts[moment] >= times:
                told.set_result(None)
            else:
                still.append((moment, times, told))
        self._waiting = still
