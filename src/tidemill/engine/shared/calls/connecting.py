"""Connecting for calls that have less time than a connect may take.

A heartbeat is given up after half a lease. A name server that does not answer, or a slow handshake, may take
longer than that every time. So a connect goes on after its call has given it up. The next call begins a
connect of its own, because the first may have met a server that never answers, and takes the connection that
is there first. There are never more than these two.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

C = TypeVar("C")


class StillConnecting(Exception):
    """No connection in this time; a connect goes on."""


class Connecting(Generic[C]):
    """The connects of one connection, for one call at a time."""

    def __init__(
        self, connect: Callable[[], Coroutine[Any, Any, C]], drop: Callable[[C], Awaitable[None]]
    ) -> None:
        """`connect` ends by itself at some time; `drop` closes what is not needed."""
        self._connect = connect
        self._drop = drop
        self._lasting: asyncio.Task[C] | None = None
        """The connect that a call has given up."""

    async def within(self, seconds: float) -> C:
        """A connection. Raises `StillConnecting`, or what the connect raised that was begun for this call."""
        end = time.monotonic() + seconds
        own = asyncio.get_running_loop().create_task(self._connect())
        lasting, self._lasting = self._lasting or own, None
        surplus = {lasting, own}
        try:
            while True:
                done, _ = await asyncio.wait(
                    surplus, timeout=max(0.0, end - time.monotonic()), return_when=asyncio.FIRST_COMPLETED
                )
                come = next((each for each in (lasting, own) if each in done and _has_come(each)), None)
                if come is not None:
                    surplus.discard(come)
                    return come.result()
                surplus -= done
                if own in done or not done:
                    if lasting in surplus:  # it may still do better
                        surplus.discard(lasting)
                        self._lasting = lasting
                    elif not done:
                        surplus.discard(own)
                        self._lasting = own
                    if own in done:
                        return own.result()  # raises
                    raise StillConnecting
        finally:
            for each in surplus:
                await self._end(each)

    async def close(self) -> None:
        """End what goes on."""
        lasting, self._lasting = self._lasting, None
        if lasting is not None:
            await self._end(lasting)

    async def _end(self, connecting: "asyncio.Task[C]") -> None:
        connecting.cancel()
        await asyncio.wait([connecting])
        if _has_come(connecting):
            await self._drop(connecting.result())


def _has_come(connecting: "asyncio.Task[C]") -> bool:
    return not connecting.cancelled() and connecting.exception() is None
