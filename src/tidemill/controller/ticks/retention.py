"""Retention: finished jobs beyond what their queue keeps are deleted, a bounded number at a time.

While there is more to delete, the next run follows after a pause of `PAUSE` times as long as the run took,
and never less than `LEAST_S`. The pause leaves the engine to those who work. After runs that deleted
something the next comes after `SOON_S`, not after `EVERY_S`: jobs end too fast to keep a minute's worth of
them, above all in memory. If two controllers prune at once, each finds less to do.
"""

import logging
import random
import time

from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine

EVERY_S = 60.0
SOON_S = 5.0
LEAST_S = 0.01
PAUSE = 4
"""So that retention never takes more than a fifth of an engine's time."""

log = logging.getLogger("tidemill.controller")


class Retention:
    """See `tidemill.controller.ticks.tick.Tick`."""

    name = "retention"
    every = EVERY_S

    def __init__(self) -> None:
        self._deleted = 0
        """Jobs deleted by the present series of runs."""

    async def run(self, engine: Engine, term: Term) -> float | None:
        began = time.monotonic()
        pruned = await engine.jobs.prune()
        self._deleted += pruned.jobs
        if pruned.more:
            return max(LEAST_S, PAUSE * (time.monotonic() - began))
        deleted, self._deleted = self._deleted, 0
        if deleted:
            log.info("retention deleted %d finished jobs", deleted)
        return (SOON_S if deleted else EVERY_S) * random.uniform(0.8, 1.2)
