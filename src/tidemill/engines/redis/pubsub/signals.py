"""The `signals` facet."""

from contextlib import suppress

from tidemill.engine.shared.calls.inbox import Inbox
from tidemill.engine.shared.checks import check_signal
from tidemill.engines.redis.db.store import RedisStore
from tidemill.model.errors import EngineUnavailable

TEXT_LIMIT = 60_000
"""Redis itself would take much more: this bounds what one message costs those who wait behind it."""


class RedisSignals:
    """See `tidemill.engine.protocol.SignalsFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    @property
    def room(self) -> int:
        return TEXT_LIMIT

    async def publish(self, topic: str, text: str = "") -> None:
        check_signal(topic, text)
        with suppress(EngineUnavailable):  # signals may be lost
            await self._store.see_through(self._store.pubsub.publish(topic, text))

    async def subscribe(self, *topics: str) -> Inbox:
        self._store.check()
        return await self._store.pubsub.subscribe(topics)
