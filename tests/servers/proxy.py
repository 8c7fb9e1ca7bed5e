"""A TCP proxy that stands between a client and a server and fails on demand.

It reads along as far as needed to tell the links apart: what a connection is for, and whether something is
asked to be done.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple


class Reading(NamedTuple):
    """How a protocol is read."""

    purpose: re.Pattern[bytes]
    """What a connection is for, in the first of its messages that says it."""
    asks: Callable[[bytes], bool]
    """Whether this asks for something to be done."""


# A startup message has the purpose. Bind asks for something to be done (Parse alone does not).
POSTGRES = Reading(re.compile(rb"application_name\0tidemill (\w+)\0"), lambda data: data.startswith(b"B"))
REDIS = Reading(re.compile(rb"tidemill-(\w+)"), lambda data: b"\r\nEVAL" in data)


class Link:
    """One client and its connection to the server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client, self.server = client, server
        self.purpose = ""
        self.asked = False
        """Something is to be done, and the reply has not come yet."""
        self.forgotten = False

    def cut(self) -> None:
        for end in (self.client, self.server):
            end.transport.abort()


class Proxy:
    """Passes bytes on until it is told otherwise."""

    def __init__(self, port: int, reading: Reading = POSTGRES) -> None:
        self._target = port
        self._reading = reading
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._links: set[Link] = set()
        self._cut_replies: Counter[str] = Counter()
        self._mute: set[str] = set()
        self._delay_s = 0.0
        self._accept_delay_s = 0.0
        self.cuts = 0
        self.requests: Counter[str] = Counter()
        """How often clients have sent something to which they then waited for a reply, by purpose."""

    @property
    def port(self) -> int:
        assert self._server is not None
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    @property
    def links(self) -> int:
        """Connections that stand now."""
        return len(self._links)

    async def start(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    def retarget(self, port: int) -> None:
        """Where connections go from now on."""
        self._target = port

    def cut_next_reply(self, purpose: str) -> None:
        """What the server says next to a call on a connection of this purpose is thrown away, and the
        connection reset: the call was applied."""
        self._cut_replies[purpose] += 1

    def cut_all(self) -> None:
        """Reset every connection."""
        for link in list(self._links):
            link.cut()

    def forget_all(self) -> None:
        """As a firewall does that has lost its memory: nothing passes on the connections of now, which
        stay open; new ones are in order."""
        for link in self._links:
            link.forgotten = True

    def mute(self, direction: str = "replies", *, on: bool = True) -> None:
        """A black hole: replies, or requests, are swallowed; connections stay open."""
        (self._mute.add if on else self._mute.discard)(direction)

    def slow(self, delay_s: float) -> None:
        """Everything takes so much longer from now on, in each direction."""
        self._delay_s = delay_s

    def slow_connects(self, delay_s: float) -> None:
        """Every connect takes so much longer from now on."""
        self._accept_delay_s = delay_s

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        if self._serving:  # their ends have come, so they end
            await asyncio.wait(self._serving, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        link: Link | None = None
        try:
            if self._accept_delay_s:
                await asyncio.sleep(self._accept_delay_s)
            to_server, from_client = await asyncio.open_connection("127.0.0.1", self._target)
            link = Link(writer, from_client)
            self._links.add(link)
            await asyncio.wait(
                [
                    asyncio.ensure_future(self._pass_requests(reader, link)),
                    asyncio.ensure_future(self._pass_replies(to_server, link)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            link.cut()
        except OSError:  # no server there: the client is to see that
            writer.transport.abort()
        finally:
            self._serving.discard(task)
            if link is not None:
                self._links.discard(link)

    async def _pass_requests(self, reader: asyncio.StreamReader, link: Link) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if not link.purpose and (found := self._reading.purpose.search(data)):
                    link.purpose = found[1].decode()
                if link.forgotten or "requests" in self._mute:
                    continue
                link.asked = link.asked or self._reading.asks(data)
                self.requests[link.purpose] += 1
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                link.server.write(data)
                await link.server.drain()

    async def _pass_replies(self, reader: asyncio.StreamReader, link: Link) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if link.asked and self._cut_replies[link.purpose] > 0:
                    self._cut_replies[link.purpose] -= 1
                    self.cuts += 1
                    return
                link.asked = False
                if link.forgotten or "replies" in self._mute:
                    continue
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                link.client.write(data)
                await link.client.drain()
