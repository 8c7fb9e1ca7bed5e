"""The `signals` facet."""

from tidemill.engine.shared.calls.inbox import Inbox
from tidemill.engine.shared.checks import check_signal
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.pubsub.pubsub import TEXT_LIMIT
from tidemill.model.event import EVENTS_TOPIC


class PostgresSignals:
    """See `tidemill.engine.protocol.SignalsFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    @property
    def room(self) -> int:
        return TEXT_LIMIT

    async def publish(self, topic: str, text: str = "") -> None:
        self._store.check()
        check_signal(topic, text)
        if topic == EVENTS_TOPIC:
            self._store.pubsub.send_events(text)
        else:
            self._store.pubsub.send([f"{topic}\n{text}" if text else topic])

    async def subscribe(self, *topics: str) -> Inbox:
        self._store.check()
        return await self._store.pubsub.subscribe(topics)
