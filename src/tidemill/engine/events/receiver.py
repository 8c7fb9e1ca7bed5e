"""The receiver: how events arrive, and how it finds out which did not.

It holds a lease in the engine under a name of its own (`ANNOUNCED`), by which emitters know that there is a
listener (`emitter`). It renews the lease every `ANNOUNCE_S`. After its process dies, the lease ends by itself
within `LEASE_S`. While emitters could not see the lease (the engine was out of reach), nothing was emitted: a
gap of unknown size. Events that were published and did not arrive show in the numbers of the next batch or
mark.

Silence may also mean that nothing can arrive here: a pooler without LISTEN, a connection that does not come
back. So with each announcement the receiver publishes an echo that only it understands. No echo for `DEAF_S`
is a gap too, and a warning.

    announced --(lease ran out)--> gap, announced again
    receiving --(no echo)--> gap, warning --(echo)--> receiving
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from tidemill.engine.events.emitter import ANNOUNCED, POLL_S
from tidemill.engine.protocol import Engine, Subscription
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.event import EVENTS_TOPIC, Gap
from tidemill.model.event_batch import Batch, Numbers, mark, unpack
from tidemill.model.time import SECOND, Span

ANNOUNCE_S = 1.0
LEASE_S = 3.0
SEEN_AFTER_S = POLL_S + 0.2
"""So long after the announcement every process emits what it changes."""
DEAF_S = 5.0
LISTEN_AGAIN_S = 0.5

log = logging.getLogger("tidemill.events")


class EventReceiver:
    """One receiver. `receive` gets what arrives, on the engine's loop; it must be quick and must not
    raise."""

    def __init__(self, engine: Engine, receive: Callable[[Batch | Gap], None]) -> None:
        self._engine = engine
        self._receive = receive
        self._name = f"{ANNOUNCED}{os.urandom(8).hex()}"
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._fence = 0
        self._echo = os.urandom(8)
        self._echoed_at = time.monotonic()
        self._deaf = False
        self._numbers = Numbers()
        self._subscription: Subscription | None = None

    async def open(self) -> None:
        """Announce it. What the engine says against that is the caller's."""
        self._subscription = await self._engine.signals.subscribe(EVENTS_TOPIC)
        try:
            await self._announce()
        except BaseException:
            await self._subscription.close()
            raise

    async def run(self) -> None:
        """Until cancelled, or until the engine is closed. Only after `open`."""
        try:
            async with asyncio.TaskGroup() as group:
                announcing = group.create_task(self._keep_announced(), name="announcing")
                await self._listen()
                announcing.cancel()
        finally:
            await self._close()

    async def _keep_announced(self) -> None:
        seen_at = time.monotonic()
        while True:
            await asyncio.sleep(ANNOUNCE_S)
            began = time.monotonic()
            try:
                renewed = await self._engine.leases.renew(self._name, fence=self._fence, ttl=_LEASE)
                if not renewed:
                    await self._announce()
                await self._engine.signals.publish(EVENTS_TOPIC, mark(self._echo, 0))
            except EngineClosed:
                return
            except EngineError as error:
                log.debug("the receiver cannot be announced now: %s", error)
                continue
            if not renewed or began - seen_at > LEASE_S:
                self._receive(Gap("unheard"))
            seen_at = began
            self._notice_deafness()

    async def _announce(self) -> None:
        lease = await self._engine.leases.acquire(self._name, holder=self._holder, ttl=_LEASE)
        assert lease is not None, "the name of a receiver is its own"
        self._fence = lease.fence

    async def _listen(self) -> None:
        while True:
            assert self._subscription is not None
            try:
                while (signal := await self._subscription.next()) is not None:
                    if signal.topic == EVENTS_TOPIC:
                        self._unpack(signal.text)
                return  # the engine was closed
            except EngineClosed:
                return
            except EngineError as error:
                log.debug("events cannot be received now: %s", error)
            await asyncio.sleep(LISTEN_AGAIN_S)

    def _unpack(self, text: str) -> None:
        batch = unpack(text)
        if batch is None:
            self._receive(Gap("lost"))
            return
        if batch.emitter == self._echo:
            self._echoed_at, self._deaf = time.monotonic(), False
            return
        missed = self._numbers.missed(batch)
        if missed is None:  # doubled
            return
        if missed:
            self._receive(Gap("lost", missed))
        if batch.count:
            self._receive(batch)

    def _notice_deafness(self) -> None:
        if not self._deaf and time.monotonic() - self._echoed_at > DEAF_S:
            self._deaf = True
            log.warning(
                "no event can be received at %s: signals do not arrive here (behind PgBouncer, say where to "
                "LISTEN: listen=host:port in the URL)",
                self._engine.name,
            )
            self._receive(Gap("unheard"))

    async def _close(self) -> None:
        """Not announced any more. If the engine cannot be reached, the lease runs out."""
        if self._subscription is not None:
            await self._subscription.close()
        with suppress(EngineError):
            await self._engine.leases.release(self._name, fence=self._fence)


_LEASE: Span = round(LEASE_S * SECOND)
