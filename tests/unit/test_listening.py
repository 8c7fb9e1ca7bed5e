"""A connection that listens ends when it is closed."""

import asyncio
from contextlib import suppress

import pytest

from tidemill.engine.shared.calls.listening import Listening
from tidemill.model.errors import EngineUnavailable, TidemillError


class Deaf(Listening[str]):
    """Its driver swallows a cancellation that comes while it connects, as asyncpg does on Python 3.11."""

    def __init__(self) -> None:
        super().__init__("nowhere")
        self.begins = asyncio.Event()
        self.dropped = 0

    async def _begin(self) -> str:
        self.begins.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "connection"

    async def _until_ended(self, connection: str) -> None:
        await asyncio.Event().wait()

    async def _drop(self, connection: str) -> None:
        self.dropped += 1

    def _missed(self) -> None: ...

    def _translated(self, error: Exception) -> TidemillError:
        return EngineUnavailable(str(error))


@pytest.mark.timeout(20)
async def test_it_ends_though_its_driver_swallows_a_cancellation() -> None:
    listening = Deaf()
    listening.start()
    await listening.begins.wait()
    await listening.close()
    assert listening.dropped == 1
