"""Chores that every worker does until a controller does them for the cluster: retention, and a look at what
the state takes.

`prune` deletes a bounded number of finished jobs at a call. Every member asks for it once a minute, at a
moment of its own: doing it twice does no harm, it only finds less. While there is more, rounds follow each
other after a pause that leaves the engine to those who work: at most `PRUNE_LIMIT` jobs every `BUSY_S`.

`storage` is looked at once a minute. What deserves a warning is logged, the same trouble once in `REMIND_S`.
"""

import asyncio
import logging
import random
import time

from penstock.engine.protocol import Engine
from penstock.model.errors import EngineClosed, EngineError
from penstock.model.storage import warnings_of
from penstock.worker.repeat import repeat

PRUNE_S = 60.0
BUSY_S = 0.1
STORAGE_S = 60.0
REMIND_S = 600.0

log = logging.getLogger("penstock.worker")


class Chores:
    """The chores of one member."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._first = self._starting = True
        self._warned: dict[tuple[str, str], float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(repeat(self.prune))
            group.create_task(repeat(self.look))

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

    async def look(self) -> float:
        """Warn of what makes the state grow, each trouble once in a while. The first round only waits."""
        if self._starting:
            self._starting = False
            return STORAGE_S * random.uniform(0.5, 1.0)
        try:
            found = warnings_of(await self._engine.inspect.storage())
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("the look at what the state takes has to wait: %s", error)
            return STORAGE_S
        now = time.monotonic()
        self._warned = {trouble: at for trouble, at in self._warned.items() if now - at < REMIND_S}
        for warning in found:
            if (warning.kind, warning.subject) not in self._warned:
                self._warned[warning.kind, warning.subject] = now
                log.warning("%s", warning.text)
        return STORAGE_S * random.uniform(0.8, 1.2)
