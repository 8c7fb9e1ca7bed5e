"""Chores that every worker does until a controller does them for the cluster: retention.

`prune` deletes a bounded number of finished jobs at a call. Every member asks for it once a minute, at a
moment of its own: doing it twice does no harm, it only finds less. While there is more, rounds follow each
other after a pause that leaves the engine to those who work: at most `BATCH_LIMIT` jobs every `BUSY_S`.
"""

import logging
import random

from penstock.engine.protocol import Engine
from penstock.model.errors import EngineClosed, EngineError
from penstock.worker.repeat import repeat

PRUNE_S = 60.0
BUSY_S = 0.1

log = logging.getLogger("penstock.worker")


class Chores:
    """The chores of one member."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first = True

    async def run(self) -> None:
        """Until cancelled."""
        await repeat(self.prune)

    async def prune(self) -> float:
        """One bounded round of retention. The first only waits: members that start together spread out."""
        if self._first:
            self._first = False
            return random.uniform(0, PRUNE_S)
        try:
            pruned = await self._engine.jobs.prune()
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("retention has to wait: %s", error)
            return PRUNE_S
        if pruned.jobs:
            log.info("retention deleted %d finished jobs", pruned.jobs)
        return BUSY_S if pruned.more else PRUNE_S * random.uniform(0.8, 1.2)
