"""An engine on one loop, with what hangs on it.

A session that has to open its engine does so with the first call that needs it. Calls that come meanwhile
wait for the same opening; if it fails, they all get its error, and the next call tries again.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tidemill.app.enqueueing.producer import Producer
from tidemill.app.reading.waiter import Waiter
from tidemill.engine.protocol import Engine
from tidemill.model.view import TaskEntry

CATALOGUE_AGE_S = 1.0
"""A task that is not in our copy of the catalogue is looked up again, at most this often."""

OpenIt = Callable[[], Coroutine[Any, Any, Engine]]


class EngineSession:
    """What the app works with on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine | OpenIt) -> None:
        self.loop = loop
        self.producer = Producer(self.opened, loop)
        self._open_it = engine if callable(engine) else None
        self._opening: asyncio.Task[Engine] | None = None
        self._engine: Engine | None = None if callable(engine) else engine
        self._waiter: Waiter | None = None
        self._catalogue: dict[str, TaskEntry] = {}
        self._read_at = float("-inf")

    async def opened(self) -> Engine:
        """The engine, opened if need be."""
        if self._engine is not None:
            return self._engine
        if self._opening is None:
            self._opening = self.loop.create_task(self._open(), name="tidemill opening")
        return await asyncio.shield(self._opening)

    async def _open(self) -> Engine:
        """A task of its own: what it opened is known here even if the caller has given up."""
        assert self._open_it is not None
        try:
            self._engine = await self._open_it()
        finally:
            self._opening = None
        return self._engine

    @property
    def brought(self) -> bool:
        """Whether the engine belongs to a worker, which closes it when it ends."""
        return self._open_it is None

    @property
    def engine(self) -> Engine:
        """The engine; only after `opened`."""
        if self._engine is None:
            raise RuntimeError("a session is used before it was opened")
        return self._engine

    @property
    def open_engine_or_none(self) -> Engine | None:
        """The engine if it is open; from any thread."""
        return self._engine

    @property
    def waiter(self) -> Waiter:
        """Those who wait for jobs to end; only after `opened`."""
        if self._waiter is None:
            self._waiter = Waiter(self.engine)
        return self._waiter

    async def entry(self, task: str) -> TaskEntry | None:
        """What the catalogue says of a task, or None."""
        if task not in self._catalogue and time.monotonic() - self._read_at > CATALOGUE_AGE_S:
            await self.read_catalogue()
        return self._catalogue.get(task)

    async def read_catalogue(self) -> dict[str, TaskEntry]:
        """All tasks that any worker has published."""
        self._catalogue = {entry.name: entry for entry in await self.engine.tasks.list()}
        self._read_at = time.monotonic()
        return self._catalogue

    @property
    def catalogue(self) -> dict[str, TaskEntry]:
        """The catalogue as it was read last, if ever."""
        return self._catalogue

    def abandon(self) -> None:
        """The worker that brought the engine closes it: only stop what runs here."""
        if self._waiter is not None:
            self._waiter.stop()

    async def close(self) -> None:
        """Finish the enqueues already made, then let go of the engine."""
        try:
            await self.producer.close()
            if self._waiter is not None:
                await self._waiter.close()
        finally:
            if self._opening is not None:  # not cancelled: half an engine cannot be closed
                await asyncio.wait({self._opening})
            if self._engine is not None:
                await self._engine.close()
