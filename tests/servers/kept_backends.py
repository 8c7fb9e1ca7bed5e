"""Stands before a PostgreSQL and keeps its backends for the next client: a session pooler, unnoticed.

An engine opens six connections. A new backend has to read the catalogue, to compile each function and to plan
each statement. For a small test (20 turns on a busy machine, 2026-11-18) the server took 198 ms of processor
time with new backends and 57 ms with kept ones.

A client that says goodbye leaves its backend, reset, to the next one with the same startup message (the same
database, user, name of application and settings), which is greeted as the first one was. The process id in
that greeting is the backend's own, so that nobody takes this for a pooler. A client that vanishes, or leaves
in the middle of something, takes its backend along, as it would without us.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress

MOST = 40
"""Backends without a client; the server takes a hundred connections."""
CANCEL, TLS, GSS = (
    (80877102).to_bytes(4, "big"),
    (80877103).to_bytes(4, "big"),
    (80877104).to_bytes(4, "big"),
)
"""What may stand where a startup message has the version of the protocol."""
GOODBYE = ord("X")
SYNC = b"S\x00\x00\x00\x04"
READY = b"Z\x00\x00\x00\x05I"
"""Outside of a transaction."""
RESET = (
    b"UNLISTEN *; DEALLOCATE ALL; RESET ALL; SELECT pg_advisory_unlock_all(); "
    b"DISCARD TEMP; DISCARD SEQUENCES\x00"
)
PATIENCE_S = 30.0


class Backend:
    """A connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.greeting = b""
        self.idle = False
        """The last that was heard from it is that it is ready, and nothing was asked since."""

    async def greet(self, startup: bytes) -> bool:
        """Whether it lets this client in; either way `greeting` is what it says."""
        self.writer.write(startup)
        while message := await self._message():
            self.greeting += message
            if message == READY:
                self.idle = True
            if message[:1] in b"ZE":
                break
        return self.idle

    async def reset(self) -> bool:
        """Whether it is as new."""
        return await self._asked(b"Q" + (len(RESET) + 4).to_bytes(4, "big") + RESET)

    async def lives(self) -> bool:
        return await self._asked(SYNC)

    async def _asked(self, request: bytes) -> bool:
        """Whether it did that, and is ready."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                self.writer.write(request)
                while message := await self._message():
                    if message[:1] in b"ZEA":  # of an error it is not used again
                        return message == READY
        return False

    async def _message(self) -> bytes:
        """The next, whole; nothing at the end."""
        with suppress(asyncio.IncompleteReadError):
            head = await self.reader.readexactly(5)
            return head + await self.reader.readexactly(int.from_bytes(head[1:], "big") - 4)
        return b""


class KeptBackends:
    """Stands before the server at a port; its own is `port`. All of it runs on one loop."""

    def __init__(self, server_port: int) -> None:
        self._target = server_port
        self._kept: dict[bytes, list[Backend]] = defaultdict(list)
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._sockets: set[asyncio.StreamWriter] = set()
        """Every socket that may be open is owned here: none is left to the garbage collector, which would
        warn of it in whatever test runs then."""
        self.port = 0

    async def start(self) -> "KeptBackends":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def without_client(self, database: str) -> int:
        """How many backends it keeps there."""
        return sum(len(kept) for startup, kept in self._kept.items() if _database_of(startup) == database)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)
        for kept in self._kept.values():
            for backend in kept:
                backend.writer.transport.abort()
        self._kept.clear()
        for writer in self._sockets:
            writer.transport.abort()
        self._sockets.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._own(writer)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server, or the run is over
        finally:
            writer.transport.abort()
            self._serving.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await _startup(reader)
        while startup[4:8] in (TLS, GSS):
            writer.write(b"N")
            startup = await _startup(reader)
        if startup[4:8] == CANCEL:
            backend = await self._open()
            try:
                backend.writer.write(startup)
                await backend.reader.read()
            finally:
                backend.writer.transport.abort()
            return
        backend = await self._take(startup)
        try:
            writer.write(backend.greeting)
            await writer.drain()
            if backend.idle and await self._said_goodbye(reader, writer, backend) and await backend.reset():
                self._keep(startup, backend)
                return
        finally:
            if backend not in self._kept[startup]:
                backend.writer.transport.abort()

    async def _take(self, startup: bytes) -> Backend:
        while kept := self._kept[startup]:
            backend = kept.pop()
            if await backend.lives():
                return backend
            backend.writer.transport.abort()
        backend = await self._open()
        try:
            await backend.greet(startup)
        except BaseException:
            backend.writer.transport.abort()
            raise
        return backend

    async def _open(self) -> Backend:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._own(writer)
        return Backend(reader, writer)

    def _own(self, writer: asyncio.StreamWriter) -> None:
        """Hold on to it until it is closed."""
        self._sockets = {one for one in self._sockets if not one.transport.is_closing()}
        self._sockets.add(writer)

    def _keep(self, startup: bytes, backend: Backend) -> None:
        backend.idle = True
        self._kept[startup].append(backend)
        if sum(map(len, self._kept.values())) > MOST:
            longest = next(kept for kept in self._kept.values() if kept)
            longest.pop(0).writer.transport.abort()

    async def _said_goodbye(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, backend: Backend
    ) -> bool:
        """Pass on what both say, until one has ended. Whether it was the client, in good order."""
        asking = asyncio.ensure_future(_pass_requests(reader, backend))
        answering = asyncio.ensure_future(_pass_replies(backend, writer))
        try:
            await asyncio.wait((asking, answering), return_when=asyncio.FIRST_COMPLETED)
            return asking.done() and not answering.done() and asking.result()
        finally:
            asking.cancel()
            answering.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)


async def _pass_requests(reader: asyncio.StreamReader, backend: Backend) -> bool:
    """Whether the client said goodbye when nothing was under way."""
    begun, left = b"", 0  # a message of which the head is not whole; what is to come of one that has begun
    while chunk := await reader.read(1 << 16):
        data, begun, at = begun + chunk, b"", left
        while at + 5 <= len(data) and data[at] != GOODBYE:
            at += 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        goodbye = at + 5 <= len(data)
        left = max(0, at - len(data))
        data, begun = data[:at], data[at:]
        if data:
            backend.idle = False
            backend.writer.write(data)
            await backend.writer.drain()
        if goodbye:
            return backend.idle
    return False


async def _pass_replies(backend: Backend, writer: asyncio.StreamWriter) -> None:
    while data := await backend.reader.read(1 << 16):
        backend.idle = data.endswith(READY)
        writer.write(data)
        await writer.drain()


async def _startup(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(int.from_bytes(head, "big") - 4)


def _database_of(startup: bytes) -> str:
    words = startup[8:].split(b"\x00")
    given = dict(zip(words[::2], words[1::2], strict=False))
    return given.get(b"database", b"").decode()
