"""Checks once a minute how much room the state takes.

Each trouble is logged as a warning, the same one at most once in `REMIND_S`. `tidemill doctor` shows all of
them at any time.
"""

import logging
import time

from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.storage import warnings_of

EVERY_S = 60.0
REMIND_S = 600.0

log = logging.getLogger("tidemill.controller")


class Upkeep:
    """See `tidemill.controller.ticks.tick.Tick`."""

    name = "upkeep"
    every = EVERY_S

    def __init__(self) -> None:
        self._warned: dict[tuple[str, str], float] = {}

    async def run(self, engine: Engine, term: Term) -> float | None:
        found = warnings_of(await engine.inspect.storage())
        now = time.monotonic()
        self._warned = {trouble: at for trouble, at in self._warned.items() if now - at < REMIND_S}
        for warning in found:
            if (warning.kind, warning.subject) not in self._warned:
                self._warned[warning.kind, warning.subject] = now
                log.warning("%s", warning.text)
        return None
