"""Retention: finished jobs beyond what their queue keeps are deleted, a bounded number at a time.

While there is more, runs follow each other after a pause that leaves the engine to those who work: at most
`PRUNE_LIMIT` jobs every `BUSY_S`. Two that prune at once find less to do each."""

import logging
import random

from penstock.controller.tick import Term
from penstock.engine.protocol import Engine

EVERY_S = 60.0
BUSY_S = 0.1

log = logging.getLogger("penstock.controller")


class Retention:
    """See `penstock.controller.tick.Tick`."""

    name = "retention"
    every = EVERY_S

    async def run(self, engine: Engine, term: Term) -> float | None:
        pruned = await engine.jobs.prune()
        if pruned.jobs:
            log.info("retention deleted %d finished jobs", pruned.jobs)
        return BUSY_S if pruned.more else EVERY_S * random.uniform(0.8, 1.2)
