"""The listener: how events are heard, and how it is known which were not.

It holds a lease in the engine under a name of its own (`ANNOUNCED`), which is how tellers know that somebody
listens (`teller`). Prolonged every `ANNOUNCE_S`, it runs out by itself `LEASE_S` after its holder died. What
tellers did not see cannot be told from silence, so a lease that ran out (the engine was out of reach) is a
gap of unknown size; what was sent and did not arrive is found by the numbers of the next batch or mark.

Silence may also be our own deafness: a pooler without LISTEN, a connection that does not come back. So with
each announcement the listener says a word to itself; if it has not heard any for `DEAF_S`, that is a gap too,
and a warning.

    announced --(lease ran out)--> gap, announced again
    hears     --(deaf)--> gap, warning --(heard)--> hears
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from tidemill.engine.protocol import Engine, Subscription
from tidemill.engine.teller import ANNOUNCED, LOOK_S
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.event import EVENTS_TOPIC, Gap
from tidemill.model.event_batch import Batch, Numbers, mark, unpack
from tidemill.model.time import SECOND, Span

ANNOUNCE_S = 1.0
LEASE_S = 3.0
SEEN_AFTER_S = LOOK_S + 0.2
"""So long after the announcement every process tells what it changes."""
DEAF_S = 5.0
LISTEN_AGAIN_S = 0.5

log = logging.getLogger("tidemill.events")


class Hearing:
    """One listener. `hear` gets what comes, on the engine's loop; it must be quick and must not raise."""

    def __init__(self, engine: Engine, hear: Callable[[Batch | Gap], None]) -> None:
        self._engine = engine
        self._hear = hear
        self._name = f"{ANNOUNCED}{os.urandom(8).hex()}"
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._fence = 0
        self._voice = os.urandom(8)
        self._heard_at = time.monotonic()
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
                renewed = await self._engine.locks.renew(self._name, fence=self._fence, ttl=_LEASE)
                if not renewed:
                    await self._announce()
                await self._engine.signals.publish(EVENTS_TOPIC, mark(self._voice, 0))
            except EngineClosed:
                return
            except EngineError as error:
                log.debug("listening cannot be announced now: %s", error)
                continue
            if not renewed or began - seen_at > LEASE_S:
                self._hear(Gap("unheard"))
            seen_at = began
            self._notice_deafness()

    async def _announce(self) -> None:
        lease = await self._engine.locks.acquire(self._name, holder=self._holder, ttl=_LEASE)
        assert lease is not None, "the name of a listener is its own"
        self._fence = lease.fence

    async def _listen(self) -> None:
        while True:
            assert self._subscription is not None
            try:
                while (signal := await self._subscription.next()) is not None:
                    if signal.topic == EVENTS_TOPIC:
                        self._receive(signal.text)
                return  # the engine was closed
            except EngineClosed:
                return
            except EngineError as error:
                log.debug("events cannot be heard now: %s", error)
            await asyncio.sleep(LISTEN_AGAIN_S)

    def _receive(self, text: str) -> None:
        batch = unpack(text)
        if batch is None:
            self._hear(Gap("lost"))
            return
        if batch.teller == self._voice:
            self._heard_at, self._deaf = time.monotonic(), False
            return
        missed = self._numbers.missed(batch)
        if missed is None:  # doubled
            return
        if missed:
            self._hear(Gap("lost", missed))
        if batch.count:
            self._hear(batch)

    def _notice_deafness(self) -> None:
        if not self._deaf and time.monotonic() - self._heard_at > DEAF_S:
            self._deaf = True
            log.warning(
                "no event can be heard at %s: signals do not arrive here (behind PgBouncer, say for whom to "
                "LISTEN: listen=host:port in the URL)",
                self._engine.name,
            )
            self._hear(Gap("unheard"))

    async def _close(self) -> None:
        """Not announced any more; where the engine does not hear that, the lease runs out."""
        if self._subscription is not None:
            await self._subscription.close()
        with suppress(EngineError):
            await self._engine.locks.release(self._name, fence=self._fence)


_LEASE: Span = round(LEASE_S * SECOND)
