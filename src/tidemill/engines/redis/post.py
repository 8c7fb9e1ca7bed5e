"""Signals between processes: PUBLISH by the script that made a change, SUBSCRIBE on a connection of its own.

A topic is a channel. The listening connection comes back by itself; after each return everybody who listens
is told to look, because what was published meanwhile is lost. Nobody would notice a connection that is gone
without a word, because nothing is asked on it: after some silence it is asked for a sign of life.
"""

import asyncio
import logging
from contextlib import suppress

from redis.asyncio.connection import AbstractConnection

from tidemill.engine.shared.inbox import Inbox
from tidemill.engines.redis.errors import translate
from tidemill.engines.redis.line import Line, backoff_s, hang_up, open_connection
from tidemill.engines.redis.place import Place
from tidemill.model.event import ANY_TOPIC, Signal

log = logging.getLogger("tidemill.engine")

SILENCE_S = 10.0
"""After so long without a word the listening connection is asked for one, after as long again given up."""


class Post:
    """Sends and receives the signals of one engine object."""

    def __init__(self, place: Place, line: Line) -> None:
        self._place = place
        self._line = line
        self._inboxes: set[Inbox] = set()
        self._listener: asyncio.Task[None] | None = None
        self._connection: AbstractConnection | None = None
        self._received = 0
        """Messages so far, whatever they said."""
        self._asked: set[str] = set()
        """Topics for which SUBSCRIBE was sent on this connection."""
        self._heard: dict[str, asyncio.Event] = {}
        """Topics, set once the server has confirmed them on this connection."""

    async def publish(self, topic: str, text: str) -> None:
        await self._line.command("PUBLISH", self._place.channels + topic, text)

    async def subscribe(self, topics: tuple[str, ...]) -> Inbox:
        """Listen; what is published after this returns is delivered, unless it is lost."""
        inbox = Inbox(topics, leave=self._inboxes.discard)
        self._inboxes.add(inbox)
        for topic in inbox.topics:
            self._heard.setdefault(topic, asyncio.Event())
        if self._listener is None:
            self._listener = asyncio.get_running_loop().create_task(self._listen())
        elif self._connection is not None:
            await self._ask(self._connection)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._place.call_timeout):
                for topic in inbox.topics:
                    await self._heard[topic].wait()
        return inbox

    async def _ask(self, connection: AbstractConnection) -> None:
        """Subscribe to what is wanted and not yet asked for. A broken connection is the listener's."""
        wanted = {topic for inbox in self._inboxes for topic in inbox.topics} - self._asked
        if wanted:
            self._asked |= wanted
            with suppress(Exception):
                channels = [self._place.channels + topic for topic in sorted(wanted)]
                await connection.send_command("SUBSCRIBE", *channels, check_health=False)

    async def _listen(self) -> None:
        """Hold a connection that listens; after each return to it everybody is told to look."""
        failures, before = 0, False
        while True:
            guard = None
            try:
                self._connection = await open_connection(self._place, "listen")
                guard = asyncio.get_running_loop().create_task(self._guard(self._connection))
                await self._ask(self._connection)
                if before:
                    log.info("listening to %s again", self._place)
                    self._deliver(Signal(ANY_TOPIC))
                before, failures = True, 0
                while True:
                    self._receive(await self._connection.read_response())
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log.log(
                    logging.DEBUG if failures else logging.WARNING,
                    "signals are lost until we listen again, work is found by looking for it: %s",
                    translate(error, self._place),
                )
                before = True
                failures += 1
            finally:
                if guard is not None:
                    guard.cancel()
                connection, self._connection = self._connection, None
                self._asked.clear()
                for heard in self._heard.values():
                    heard.clear()
                if connection is not None:
                    await hang_up(connection)
            await asyncio.sleep(backoff_s(failures))

    async def _guard(self, connection: AbstractConnection) -> None:
        """Break a connection on which nothing comes any more: then its reader looks for another."""
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
        if self._connection is not None:
            _break(self._connection)

    def _receive(self, message: object) -> None:
        self._received += 1
        if not isinstance(message, list) or len(message) != 3:
            return  # the answer to a PING
        kind, channel, content = message
        topic = channel.decode().removeprefix(self._place.channels)
        if kind == b"subscribe":
            self._heard.setdefault(topic, asyncio.Event()).set()
        elif kind == b"message":
            self._deliver(Signal(topic, content.decode(errors="replace")))

    def _deliver(self, signal: Signal) -> None:
        for inbox in self._inboxes:
            inbox.deliver(signal)

    async def close(self) -> None:
        """End every subscription, hang up."""
        for inbox in list(self._inboxes):
            await inbox.close()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])


def _break(connection: AbstractConnection) -> None:
    """At once, whatever the peer says; who reads finds it broken."""
    if connection._writer is not None:
        connection._writer.transport.abort()
