"""An ear of one engine object: a connection that listens, for as long as anybody wants to hear.

It comes back by itself. Whoever listens is then told to look, because what was said meanwhile is lost. A
connection that says nothing may be in order or gone: it is asked now and then.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tidemill.engines.postgres.dial import Connection, Dial
from tidemill.engines.postgres.errors import translate
from tidemill.engines.postgres.line import BACKOFF_S

ASK_S = 10.0
"""How long a silent connection is believed in."""

log = logging.getLogger("tidemill.engine")


class Ear:
    """`heard` gets every payload of a channel; `missed` is called when some may have been lost."""

    def __init__(
        self, dial: Dial, channel: str, heard: Callable[[str], None], missed: Callable[[], None]
    ) -> None:
        self._dial = dial
        self._place = dial.place
        self._channel = channel
        self._heard = heard
        self._missed = missed
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    async def open(self) -> None:
        """Begin to listen; waits until it does, or for as long as a call may take."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._listening.wait(), self._place.call_timeout)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self) -> None:
        failures = 0
        while True:
            connection: Connection[Any] | None = None
            era = self._dial.era
            try:
                connection = await self._dial.open_listening()
                async with asyncio.timeout(self._place.call_timeout):
                    await connection.add_listener(self._channel, self._receive)
                if self._listening.is_set() or failures:
                    self._missed()
                failures = 0
                self._listening.set()
                await self._until_ended(connection, era)
            except Exception as error:
                failures += 1
                if failures == 1:
                    why = translate(error, self._place)
                    log.info("signals are not heard for now, jobs are found by looking: %s", why)
            finally:
                if connection is not None:
                    connection.terminate()
            low, high = BACKOFF_S
            await asyncio.sleep(min(high, low * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0))

    async def _until_ended(self, connection: "Connection[Any]", era: int) -> None:
        """Until it breaks, or the server is no longer the right one."""
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        self._dial.told.add(ended.set)
        try:
            while self._dial.era == era and not connection.is_closed():
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), ASK_S)
                    return
                async with asyncio.timeout(min(ASK_S, self._place.call_timeout)):
                    await connection.execute("SELECT 1")
        finally:
            self._dial.told.discard(ended.set)

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._heard(str(payload))
