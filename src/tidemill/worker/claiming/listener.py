"""Listens for "something became claimable".

Signals may be lost, doubled or late: they only make a claim come sooner than the safety poll would.
"""

import asyncio
from collections.abc import Callable, Iterable

from tidemill.engine.protocol import Engine, Subscription
from tidemill.model.errors import EngineUnavailable
from tidemill.model.event import OPTIONS_TOPIC, ready_topic
from tidemill.worker.backoff import Backoff


class WakeupListener:
    """Calls `wake` for every signal about these queues, and `options` if options of queues have changed."""

    def __init__(
        self, engine: Engine, queues: Iterable[str], wake: Callable[[], None], options: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._topics = [OPTIONS_TOPIC, *map(ready_topic, queues)]
        self._wake = wake
        self._options = options
        self._closed = False

    async def run(self) -> None:
        """Listen until cancelled. Subscribe again after an outage of the engine."""
        backoff = Backoff()
        while not self._closed:
            try:
                subscription = await self._engine.signals.subscribe(*self._topics)
            except EngineUnavailable:
                await asyncio.sleep(backoff.next_s())
                continue
            backoff.reset()
            self._wake()  # a signal may have come before we listened
            await self._receive(subscription)
            if not self._closed:
                await asyncio.sleep(backoff.next_s())

    def close(self) -> None:
        """Call this before you cancel `run`: `asyncio.wait_for` of Python 3.11, which a subscription may use,
        swallows a cancellation that comes together with a signal."""
        self._closed = True

    async def _receive(self, subscription: Subscription) -> None:
        try:
            while not self._closed and (signal := await subscription.next()) is not None:
                (self._options if signal.topic == OPTIONS_TOPIC else self._wake)()
        except EngineUnavailable:  # subscribed again by the caller
            return
        finally:
            await subscription.close()
