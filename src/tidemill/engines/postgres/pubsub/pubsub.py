"""Signals between processes: NOTIFY on a connection of its own, LISTEN on another.

NOTIFY takes a lock at commit that all notifying transactions queue for; in every transaction it halves the
throughput of twenty writers. So the writer of a change hands its signals over. The first of a quiet period is
sent at once, then what has come together, at most once in 5 ms. After a longer quiet the writer may send its
signals within its own transaction, which saves the idle listener half a millisecond.
A payload is a JSON array of 'topic' or 'topic<newline>text'.

Events are loud: they go on a channel of their own, as they are, so that only those receive and read them who
listen to events. (The server wakes every listening session of the database all the same.)
"""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from tidemill.engine.shared.calls.inbox import Inbox
from tidemill.engines.postgres.db.connect import PostgresConnector
from tidemill.engines.postgres.db.connection import PostgresConnection
from tidemill.engines.postgres.pubsub.listen_connection import PostgresListenConnection
from tidemill.model.errors import EngineError
from tidemill.model.event import ANY_TOPIC, EVENTS_TOPIC, Signal

MERGE_S = 0.005
QUIET_S = 0.01
"""After so long without a signal one may go along with its change: rarely enough not to hold up others. (At
50 ms a process that enqueued thirty times a second never led: each of its signals was a second transaction
after the first, a millisecond later.)"""
PAYLOAD_LIMIT = 7_900
"""PostgreSQL takes less than 8,000 bytes."""
TEXT_LIMIT = 7_600
"""Of one signal; the rest is for its topic."""
HELD_LIMIT = 10_000
"""The most signals that wait to be sent; beyond it topics are sent without their texts."""

LOUD_LIMIT = 1_000
"""The most texts of events that wait to be sent."""

_NOTIFY = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS u (channel, payload)"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str]).decode


class PostgresPubSub:
    """Sends and receives the signals of one engine object."""

    def __init__(self, connector: PostgresConnector) -> None:
        self._connector = connector
        self._url = connector.url
        self._connection = PostgresConnection(connector, "signals")
        self._listener = PostgresListenConnection(connector, self._url.channel, self._receive, self._missed)
        self._loud_listener = PostgresListenConnection(
            connector, self._url.loud_channel, self._receive_events, self._missed
        )
        self._held: dict[str, None] = {}
        self._loud: list[str] = []
        self._sender: asyncio.Task[None] | None = None
        self._sent_at = 0.0
        self._inboxes: set[Inbox] = set()

    @property
    def listens(self) -> bool:
        return self._connector.listens

    def send(self, signals: Iterable[str]) -> None:
        """Publish soon; never waits."""
        for signal in signals:
            self._held[signal if len(self._held) < HELD_LIMIT else signal.partition("\n")[0]] = None
        self._begin()

    def send_events(self, text: str) -> None:
        """The same for events; those that find no room are lost, and their numbers show that."""
        if len(self._loud) < LOUD_LIMIT:
            self._loud.append(text)
        self._begin()

    def _begin(self) -> None:
        if (self._held or self._loud) and self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_all())

    def lead(self) -> str | None:
        """The channel, if it has been quiet: the caller sends its signals along with its change."""
        quiet = self._sender is None and time.monotonic() - self._sent_at > QUIET_S
        self._sent_at = time.monotonic()
        return self._url.channel if quiet else None

    async def _send_all(self) -> None:
        try:
            while self._held or self._loud:
                held, self._held = self._held, {}
                loud, self._loud = self._loud, []
                payloads = _payloads(held) if held else []
                channels = [self._url.channel] * len(payloads) + [self._url.loud_channel] * len(loud)
                with suppress(EngineError):  # signals may be lost
                    await self._connection.fetch(_NOTIFY, channels, payloads + loud)
                self._sent_at = time.monotonic()
                await asyncio.sleep(MERGE_S)
        finally:
            self._sender = None
            self._begin()

    async def subscribe(self, topics: tuple[str, ...]) -> Inbox:
        """Listen; what is published after this returns is delivered, unless it is lost."""
        inbox = Inbox(topics, leave=self._inboxes.discard, poll=self._cannot_listen)
        self._inboxes.add(inbox)
        if self.listens:
            if EVENTS_TOPIC in inbox.topics:
                await self._loud_listener.open()
            if inbox.topics != {EVENTS_TOPIC}:
                await self._listener.open()
        return inbox

    async def _cannot_listen(self) -> bool:
        """Then there may always be something."""
        return not self.listens

    def _receive(self, payload: str) -> None:
        try:
            signals = _decode(payload)
        except msgspec.DecodeError:  # not ours
            return
        for signal in signals:
            topic, _, text = signal.partition("\n")
            self._deliver(Signal(topic, text))

    def _receive_events(self, payload: str) -> None:
        self._deliver(Signal(EVENTS_TOPIC, payload))

    def _missed(self) -> None:
        self._deliver(Signal(ANY_TOPIC))

    def _deliver(self, signal: Signal) -> None:
        for inbox in self._inboxes:
            inbox.deliver(signal)

    async def close(self) -> None:
        """Send what is held, end every subscription, hang up."""
        for inbox in list(self._inboxes):
            await inbox.close()
        while self._sender is not None:
            await asyncio.wait([self._sender])
        await self._listener.close()
        await self._loud_listener.close()
        await self._connection.close()


def _payloads(signals: Iterable[str]) -> list[str]:
    """Signals as JSON arrays within the limit; one that is too long goes without its text."""
    payloads: list[str] = []
    parts: list[str] = []
    size = 2
    for signal in signals:
        part = _encode(signal).decode()
        if len(part.encode()) > PAYLOAD_LIMIT:
            part = _encode(signal.partition("\n")[0][:200]).decode()
        length = len(part.encode()) + 1
        if parts and size + length > PAYLOAD_LIMIT:
            payloads.append(f"[{','.join(parts)}]")
            parts, size = [], 2
        parts.append(part)
        size += length
    payloads.append(f"[{','.join(parts)}]")
    return payloads
