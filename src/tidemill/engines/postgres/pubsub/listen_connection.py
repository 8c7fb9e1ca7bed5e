"""A connection that listens to one channel (`engine.shared.listening`)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tidemill.engine.shared.calls.listening import SILENCE_S, Listening
from tidemill.engines.postgres.db.connect import Connection, PostgresConnector
from tidemill.engines.postgres.db.errors import translate
from tidemill.model.errors import TidemillError


class PostgresListenConnection(Listening["Connection[Any]"]):
    """`received` gets every payload of a channel; `missed` is called when some may have been lost."""

    def __init__(
        self,
        connector: PostgresConnector,
        channel: str,
        received: Callable[[str], None],
        missed: Callable[[], None],
    ) -> None:
        super().__init__(connector.url)
        self._connector = connector
        self._url = connector.url
        self._channel = channel
        self._received = received
        self._on_missed = missed
        self._era = connector.era
        self._listening = asyncio.Event()

    async def open(self) -> None:
        """Begin to listen; waits until it does, or for as long as a call may take."""
        self.start()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._listening.wait(), self._url.call_timeout)

    async def _begin(self) -> "Connection[Any]":
        self._era = self._connector.era
        connection = await self._connector.open_listening()
        try:
            async with asyncio.timeout(self._url.call_timeout):
                await connection.add_listener(self._channel, self._receive)
        except BaseException:
            connection.terminate()
            raise
        self._listening.set()
        return connection

    async def _until_ended(self, connection: "Connection[Any]") -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        self._connector.on_new_era.add(ended.set)
        try:
            while self._connector.era == self._era and not connection.is_closed():
                with suppress(TimeoutError):
                    async with asyncio.timeout(SILENCE_S):
                        await ended.wait()
                    return
                async with asyncio.timeout(min(SILENCE_S, self._url.call_timeout)):
                    await connection.execute("SELECT 1")
        finally:
            self._connector.on_new_era.discard(ended.set)

    async def _drop(self, connection: "Connection[Any]") -> None:
        connection.terminate()

    def _missed(self) -> None:
        self._on_missed()

    def _translated(self, error: Exception) -> TidemillError:
        return translate(error, self._url)

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        self._received(str(payload))
