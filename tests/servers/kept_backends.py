"""Stands before a PostgreSQL and keeps its backends for the next client: a session pooler, unnoticed.

An engine opens six connections. A new backend has to read the catalogue, to compile each function and to plan
each statement. For a small test (20 turns on a busy machine, 2026-11-18) the server took 198 ms of processor
time with new backends and 57 ms with kept ones.

A client that says goodbye leaves its backend, reset, to the next one with the same startup message (the same
database, user, name of application and settings), which is greeted as the first one was. The process id in
that greeting is the backend's own, so that nobody takes this for a pooler. A client that vanishes, or leaves
in the middle of something, takes its backend along, as it would without us.

Every byte of every test on PostgreSQL passes here, so both sides are protocols and not streams: that halves
the processor time.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, cast

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


class Side(asyncio.Protocol):
    """One end of a socket. While it cannot be written to, its peer is not read from."""

    transport: asyncio.Transport

    def __init__(self, sides: "set[Side]") -> None:
        self._sides = sides
        self.peer: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._sides.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._sides.discard(self)

    def pause_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.transport.resume_reading()


class Backend(Side):
    """A connection to the server."""

    def __init__(self, sides: set[Side]) -> None:
        super().__init__(sides)
        self.startup = b""
        self.greeting = b""
        self.idle = False
        """The last that was received from it is that it is ready, and nothing was sent since."""
        self.gone = asyncio.get_running_loop().create_future()
        self._received = b""
        self._enough: tuple[bytes, asyncio.Future[bytes]] | None = None
        """The kinds of messages that end an answer, and who waits for it."""

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.idle = data.endswith(READY)
            self.peer.transport.write(data)
        else:
            self._received += data
            self._answer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.gone.set_result(None)
        if self.peer is not None:
            self.peer.transport.close()
        elif self._enough is not None and not self._enough[1].done():
            self._enough[1].set_result(self._received)

    async def greet(self, startup: bytes) -> None:
        """`greeting` is what it says to a client, whether it lets it in or not."""
        self.startup = startup
        self.greeting = await self._ask(startup, b"ZE")
        self.idle = self.greeting.endswith(READY)

    async def reset(self) -> bool:
        """Whether it is as new."""
        request = b"Q" + (len(RESET) + 4).to_bytes(4, "big") + RESET
        return (await self._ask(request, b"ZEA")).endswith(READY)

    async def lives(self) -> bool:
        return await self._ask(SYNC, b"ZEA") == READY

    async def _ask(self, request: bytes, ends: bytes) -> bytes:
        """Everything up to the first message of such a kind, or what came before the connection ended."""
        if self.gone.done():
            return b""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._enough = (ends, answer)
        self.transport.write(request)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await answer
        except TimeoutError:
            return b""
        finally:
            self._enough, self._received = None, b""

    def _answer(self) -> None:
        at, data = 0, self._received
        while self._enough is not None and at + 5 <= len(data):
            end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
            if end <= len(data) and data[at] in self._enough[0] and not self._enough[1].done():
                self._enough[1].set_result(data[:end])
                return
            at = end


class Client(Side):
    """A connection of a client's."""

    def __init__(
        self,
        sides: set[Side],
        begin: "Callable[[Client, bytes], None]",
        give_back: "Callable[[Backend], None]",
    ) -> None:
        super().__init__(sides)
        self._begin = begin
        self._give_back = give_back
        self._startup = b""
        self._begun, self._left = b"", 0
        """A message of which the head is not whole; what is to come of one that has begun."""

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self._pass_on(cast(Backend, self.peer), data)
        else:
            self._startup += data
            self._read_startup()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.peer is not None:
            self._leave().transport.abort()

    def _read_startup(self) -> None:
        while len(self._startup) >= (size := int.from_bytes(self._startup[:4], "big") or 1 << 30):
            startup, self._startup = self._startup[:size], self._startup[size:]
            if startup[4:8] not in (TLS, GSS):
                self._begin(self, startup)
                return
            self.transport.write(b"N")

    def meet(self, backend: Backend) -> None:
        """From now on both speak with each other."""
        self.transport.write(backend.greeting)
        self.peer, backend.peer = backend, self

    def _leave(self) -> Backend:
        """The backend has no client any more."""
        backend = cast(Backend, self.peer)
        self.peer = backend.peer = None
        backend.transport.resume_reading()
        return backend

    def _pass_on(self, backend: Backend, chunk: bytes) -> None:
        data, at = self._begun + chunk, self._left
        while at + 5 <= len(data) and data[at] != GOODBYE:
            at += 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        goodbye = at + 5 <= len(data)
        self._left = max(0, at - len(data))
        data, self._begun = data[:at], data[at:]
        if data:
            backend.idle = False
            backend.transport.write(data)
        if goodbye:
            self._give_back(self._leave())
            self.transport.close()


class KeptBackends:
    """Stands before the server at a port; its own is `port`. All of it runs on one loop."""

    def __init__(self, server_port: int) -> None:
        self._target = server_port
        self._kept: dict[bytes, list[Backend]] = defaultdict(list)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[bool]] = set()
        self._resets: dict[bytes, set[asyncio.Task[bool]]] = defaultdict(set)
        """Those under way, by startup message: the next client is better off with one of them."""
        self._sides: set[Side] = set()
        """Every socket that is open."""
        self.port = 0

    async def start(self) -> "KeptBackends":
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Client(self._sides, self._begin, self._take_back), "127.0.0.1", 0
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def without_client(self, database: str) -> int:
        """How many backends it keeps there."""
        return sum(len(kept) for startup, kept in self._kept.items() if _database_of(startup) == database)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        self._kept.clear()
        while self._sides:  # what is aborted is closed with the next turn of the loop
            for side in self._sides:
                side.transport.abort()
            await asyncio.sleep(0)

    def _begin(self, client: Client, startup: bytes) -> None:
        self._do(self._cancel(startup) if startup[4:8] == CANCEL else self._lend(client, startup), client)

    def _take_back(self, backend: Backend) -> None:
        if backend.idle:
            resets = self._resets[backend.startup]
            reset = self._do(self._keep(backend), backend)
            resets.add(reset)
            reset.add_done_callback(resets.discard)
        else:
            backend.transport.abort()

    def _do(self, work: Coroutine[Any, Any, bool], side: Side) -> "asyncio.Task[bool]":
        """Do this, and close the side unless the work says that it stays."""

        def done(task: "asyncio.Task[bool]") -> None:
            self._tasks.discard(task)
            lost = task.cancelled() or isinstance(task.exception(), OSError)
            if lost or not task.result():
                side.transport.close()

        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)
        return task

    async def _cancel(self, request: bytes) -> bool:
        backend = await self._open()
        backend.transport.write(request)
        await backend.gone
        return False

    async def _lend(self, client: Client, startup: bytes) -> bool:
        backend = await self._take(startup)
        if client.transport.is_closing():
            self._take_back(backend)
        elif backend.idle:
            client.meet(backend)
            return True
        else:  # it does not let this client in, and says why
            client.transport.write(backend.greeting)
            backend.transport.abort()
        return False

    async def _take(self, startup: bytes) -> Backend:
        kept, resets = self._kept[startup], self._resets[startup]
        while kept or resets:
            if not kept:
                await asyncio.wait(resets, return_when=asyncio.FIRST_COMPLETED)
                continue
            backend = kept.pop()
            if await backend.lives():
                return backend
            backend.transport.abort()
        backend = await self._open()
        await backend.greet(startup)
        return backend

    async def _open(self) -> Backend:
        loop = asyncio.get_running_loop()
        _, backend = await loop.create_connection(lambda: Backend(self._sides), "127.0.0.1", self._target)
        return backend

    async def _keep(self, backend: Backend) -> bool:
        if not await backend.reset():
            return False
        self._kept[backend.startup].append(backend)
        if sum(map(len, self._kept.values())) > MOST:
            longest = next(kept for kept in self._kept.values() if kept)
            longest.pop(0).transport.abort()
        return True


def _database_of(startup: bytes) -> str:
    words = startup[8:].split(b"\x00")
    given = dict(zip(words[::2], words[1::2], strict=False))
    return given.get(b"database", b"").decode()
