"""Keeps a worker's limits of its own (`per_worker`) as they are in force.

What is declared and what operators set over it is known to the engine. This worker reads it after it has
published its own declarations, and again whenever it has changed: a signal says so at once, and if that was
lost, the next heartbeat's answer has another number.
"""

import asyncio
from collections.abc import Callable, Mapping

from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.queues.queue import QueueOptions
from tidemill.worker.backoff import Backoff
from tidemill.worker.claiming.wakeup import Wakeup

GAP_S = 0.1
"""The least time between two readings, however often the options change."""


class OptionsWatch:
    """Calls `apply` with the options of all queues, each time that they may have changed."""

    def __init__(self, engine: Engine, apply: Callable[[Mapping[str, QueueOptions]], None]) -> None:
        self._engine = engine
        self._apply = apply
        self._wakeup = Wakeup()
        self._number: int | None = None

    async def run(self) -> None:
        """Until cancelled."""
        backoff = Backoff()
        while True:
            await self._wakeup.wait(None)
            try:
                await self.read()
            except EngineUnavailable:
                self._wakeup.wake()
                await asyncio.sleep(backoff.next_s())
            else:
                backoff.reset()
                await asyncio.sleep(GAP_S)

    async def read(self) -> None:
        """Read them now."""
        self._apply({queue.name: queue.options for queue in await self._engine.queues.list()})

    def changed(self) -> None:
        """A signal says that they have changed."""
        self._wakeup.wake()

    def heartbeat_answered(self, number: int) -> None:
        """This is `HeartbeatReply.options`."""
        if number != self._number:
            self._number = number
            self._wakeup.wake()
