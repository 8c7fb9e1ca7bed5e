"""A TCP proxy that stands between a client and a server and fails on demand."""

import asyncio
from contextlib import suppress


class Proxy:
    """Passes bytes on until it is told otherwise."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut_replies = False
        self._mute = False
        self.cuts = 0
        self.requests = 0
        """How often a client has sent something to which it then waited for a reply."""

    @property
    def port(self) -> int:
        assert self._server is not None
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    async def start(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    def cut_next_reply(self) -> None:
        """What the server says next is thrown away and its connection reset: the call was applied."""
        self._cut_replies = True

    def mute(self, *, on: bool = True) -> None:
        """A black hole: replies are swallowed, connections stay open."""
        self._mute = on

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        if self._links:  # their ends have come, so they end
            await asyncio.wait(self._links, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        with suppress(OSError):
            to_server, from_client = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers |= {writer, from_client}
            await asyncio.wait(
                [
                    asyncio.ensure_future(self._pass_on(reader, from_client, replies=False)),
                    asyncio.ensure_future(self._pass_on(to_server, writer, replies=True)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            for each in (writer, from_client):
                each.transport.abort()
        self._links.discard(task)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, replies: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if replies and self._cut_replies:
                    self._cut_replies = False
                    self.cuts += 1
                    return
                if replies and self._mute:
                    continue
                self.requests += not replies
                writer.write(data)
                await writer.drain()
