"""A connection that listens, for as long as there are subscribers.

It comes back by itself. Subscribers then get a signal to poll, because what was published meanwhile is lost.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from tidemill.engine.ending import end
from tidemill.engine.shared.calls.reconnecting import backoff_s
from tidemill.model.errors import TidemillError

C = TypeVar("C")

SILENCE_S = 10.0
"""A silent connection may be in order or gone. After so long we send something that it has to answer."""

log = logging.getLogger("tidemill.engine")


class Listening(ABC, Generic[C]):
    """One connection of the driver's kind `C`, held by a task of its own."""

    def __init__(self, shown: object) -> None:
        self._shown = shown
        """The server, for people."""
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def _begin(self) -> C:
        """Connect and listen."""

    @abstractmethod
    async def _until_ended(self, connection: C) -> None:
        """Receive, until the connection ends, is silent for too long, or leads to the wrong server."""

    @abstractmethod
    async def _drop(self, connection: C) -> None:
        """End a connection, whatever state it is in."""

    @abstractmethod
    def _missed(self) -> None:
        """Signals may have been lost."""

    @abstractmethod
    def _translated(self, error: Exception) -> TidemillError:
        """Our error for one of the driver's."""

    def start(self) -> None:
        """Begin to listen, unless that has begun."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    async def close(self) -> None:
        """Listen no more."""
        if self._task is not None:
            await end(self._task)

    async def _listen(self) -> None:
        failures, before = 0, False
        while True:
            connection: C | None = None
            try:
                connection = await self._begin()
                if before:
                    log.info("listening to %s again", self._shown)
                    self._missed()
                before, failures = True, 0
                await self._until_ended(connection)
            except Exception as error:
                log.log(
                    logging.DEBUG if failures else logging.WARNING,
                    "signals are lost until we listen again, work is found by polling: %s",
                    self._translated(error),
                )
                before = True
                failures += 1
            finally:
                if connection is not None:
                    await self._drop(connection)
            await asyncio.sleep(backoff_s(failures))
