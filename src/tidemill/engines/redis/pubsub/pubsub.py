"""Signals between processes: PUBLISH by the script that made a change, SUBSCRIBE on a connection of its own.

A topic is a channel. The listen connection comes back by itself: see `engine.shared.listening`. A
connection may be gone without a word, and we would not notice, because we send nothing on it. So after
`SILENCE_S` without a word we send a PING. After as long again without an answer we give the connection up.
"""

import asyncio
from contextlib import suppress

from redis.asyncio.connection import AbstractConnection

from tidemill.engine.shared.calls.inbox import Inbox
from tidemill.engine.shared.calls.listening import SILENCE_S, Listening
from tidemill.engines.redis.db.connect import hang_up, open_connection
from tidemill.engines.redis.db.connection import RedisConnection
from tidemill.engines.redis.db.errors import translate
from tidemill.engines.redis.url import RedisUrl
from tidemill.model.errors import TidemillError
from tidemill.model.event import ANY_TOPIC, Signal


class RedisPubSub(Listening[AbstractConnection]):
    """Sends and receives the signals of one engine object."""

    def __init__(self, url: RedisUrl, connection: RedisConnection) -> None:
        """`connection`: for what is published by hand."""
        super().__init__(url)
        self._url = url
        self._sends = connection
        self._inboxes: set[Inbox] = set()
        self._listens: AbstractConnection | None = None
        self._received = 0
        """Messages so far, whatever they said."""
        self._requested: set[str] = set()
        """Topics for which SUBSCRIBE was sent on this connection."""
        self._confirmed: dict[str, asyncio.Event] = {}
        """Topics, set once the server has confirmed them on this connection."""

    async def publish(self, topic: str, text: str) -> None:
        await self._sends.command("PUBLISH", self._url.channels + topic, text)

    async def subscribe(self, topics: tuple[str, ...]) -> Inbox:
        """Listen; what is published after this returns is delivered, unless it is lost."""
        inbox = Inbox(topics, leave=self._inboxes.discard)
        self._inboxes.add(inbox)
        for topic in inbox.topics:
            self._confirmed.setdefault(topic, asyncio.Event())
        self.start()
        if self._listens is not None:
            await self._subscribe_rest(self._listens)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._url.call_timeout):
                for topic in inbox.topics:
                    await self._confirmed[topic].wait()
        return inbox

    async def _subscribe_rest(self, connection: AbstractConnection) -> None:
        """Subscribe to the topics that are wanted and not yet requested. A broken connection is noticed by
        the task that listens."""
        wanted = {topic for inbox in self._inboxes for topic in inbox.topics} - self._requested
        if wanted:
            self._requested |= wanted
            with suppress(Exception):
                channels = [self._url.channels + topic for topic in sorted(wanted)]
                await connection.send_command("SUBSCRIBE", *channels, check_health=False)

    async def _begin(self) -> AbstractConnection:
        self._listens = connection = await open_connection(self._url, "listen")
        try:
            await self._subscribe_rest(connection)
        except BaseException:
            await self._drop(connection)
            raise
        return connection

    async def _until_ended(self, connection: AbstractConnection) -> None:
        guard = asyncio.get_running_loop().create_task(self._guard(connection))
        try:
            while True:
                self._receive(await connection.read_response())
        finally:
            guard.cancel()

    async def _drop(self, connection: AbstractConnection) -> None:
        self._listens = None
        self._requested.clear()
        for confirmed in self._confirmed.values():
            confirmed.clear()
        await hang_up(connection)

    def _missed(self) -> None:
        self._deliver(Signal(ANY_TOPIC))

    def _translated(self, error: Exception) -> TidemillError:
        return translate(error, self._url)

    async def _guard(self, connection: AbstractConnection) -> None:
        """Break a connection on which nothing comes any more: then its reader opens another."""
        while True:
            seen = self._received
            await asyncio.sleep(SILENCE_S)
            if self._received == seen:
                with suppress(Exception):  # a broken connection is the listener's
                    await connection.send_command("PING", check_health=False)
                await asyncio.sleep(SILENCE_S)
                if self._received == seen:
                    _break(connection)

    def leave_server(self) -> None:
        """Listen on a new connection: behind the address there may be another server by now."""
        if self._listens is not None:
            _break(self._listens)

    def _receive(self, message: object) -> None:
        self._received += 1
        if not isinstance(message, list) or len(message) != 3:
            return  # the answer to a PING
        kind, channel, content = message
        topic = channel.decode().removeprefix(self._url.channels)
        if kind == b"subscribe":
            self._confirmed.setdefault(topic, asyncio.Event()).set()
        elif kind == b"message":
            self._deliver(Signal(topic, content.decode(errors="replace")))

    def _deliver(self, signal: Signal) -> None:
        for inbox in self._inboxes:
            inbox.deliver(signal)

    async def close(self) -> None:
        """End every subscription, hang up."""
        for inbox in list(self._inboxes):
            await inbox.close()
        await super().close()


def _break(connection: AbstractConnection) -> None:
    """At once, whatever the peer says; who reads finds it broken."""
    if connection._writer is not None:
        connection._writer.transport.abort()
