"""The `signals` facet."""

from tidemill.engine.shared.checks import check_signal
from tidemill.engine.shared.inbox import Inbox
from tidemill.engines.postgres.post import TEXT_LIMIT
from tidemill.engines.postgres.store import Store
from tidemill.model.event import EVENTS_TOPIC


class PostgresSignals:
    """See `tidemill.engine.protocol.Signals`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def room(self) -> int:
        return TEXT_LIMIT

    async def publish(self, topic: str, text: str = "") -> None:
        self._store.check()
        check_signal(topic, text)
        if topic == EVENTS_TOPIC:
            self._store.post.send_events(text)
        else:
            self._store.post.send([f"{topic}\n{text}" if text else topic])

    async def subscribe(self, *topics: str) -> Inbox:
        self._store.check()
        return await self._store.post.subscribe(topics)
