"""Messages between a supervisor and a worker process, or between a worker process and a runner.

Each process that is started has one socketpair, with one JSON object a line. This channel carries orders and
answers: stop, hurry, this run was cancelled, I am done. What must be visible even when a process cannot send
is in the held table. So every message here may arrive late (a blocked loop reads nothing), and a sender must
not depend on its arrival in time.

Sending never waits. A process may not read, because a task holds its GIL or because it was stopped. Then its
peer's buffer would grow: past `PENDING_LIMIT` a message is refused, and `send` returns False. Heartbeats come
again by themselves. News of runs is sent again with the next heartbeat until it could be sent.

**What the peer sent before it ended is read to its end**, whatever happens to what we send. Its last message
says how many jobs were handed back, and whether a task is to blame. A transport closes after the first write
that fails, and drops what it has not read. So a channel has two transports on one socket: one reads, the
other writes. (`add_reader` would do with one socket, but uvloop calls no reader of a socket whose peer ended
before it had read everything.)

The end of the stream means that the peer is gone. For a process that was started this also means that its
authority is gone, and it ends at once. `parent_death` ends a process whose loop does not turn.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.stats.batch import StatsRow
from tidemill.worker.config import WorkerConfig

T = TypeVar("T")

PENDING_LIMIT = 1 << 20
"""The most bytes that wait for a peer that does not read."""
LINE_LIMIT = 16 << 20
"""A longer line is not one of ours: a payload and a result are 1 MiB each, 1.4 in base64."""

Run: TypeAlias = tuple[str, Fence]
"""A run on the channel: the id in hex, and the fence."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first message: who the worker process is. It is not sent by command line or environment, where
    others could see a password in the URL."""

    config: WorkerConfig
    member: str
    claimant: str
    capacity: int
    """Rows of the held table."""
    takes_suspects: bool


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Claim no more and finish. At the timeout, release what still runs. None: no deadline."""

    timeout_s: float | None = None


class Hurry(msgspec.Struct, frozen=True, tag="hurry"):
    """The deadline of the drain is now."""


class StopRequested(msgspec.Struct, frozen=True, tag="stop_requested"):
    """Somebody requested to cancel these runs."""

    runs: list[Run]


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """These runs belong to others now."""

    fences: list[Fence]


class HeartbeatAnswered(msgspec.Struct, frozen=True, tag="heartbeat_answered"):
    """A heartbeat was answered, or not. The held table has the moment."""

    ok: bool
    options: int = 0
    """`HeartbeatReply.options`."""


class PublishAgain(msgspec.Struct, frozen=True, tag="publish_again"):
    """The engine may have forgotten tasks, queues and schedules: publish them before the next claim."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The app is loaded, its start-up tasks have run, and claims begin."""

    queues: list[str]
    schedules: list[str] = []
    """Those that its code declares."""
    declares: list[str] = []
    """The queues of which its code says something."""
    tasks: list[str] = []
    """The names of the tasks that its code has."""


class Published(msgspec.Struct, frozen=True, tag="published"):
    """The engine knows its tasks, queues and schedules."""


class RunStatistics(msgspec.Struct, frozen=True, tag="statistics"):
    """How long jobs waited and ran since the last such message: after each answered heartbeat, and before the
    last message."""

    rows: list[StatsRow]


class CannotLoad(msgspec.Struct, frozen=True, tag="cannot_load"):
    """It cannot work at all, and why: the app cannot be loaded, the engine refuses us. It ends now."""

    message: str


class Leaving(msgspec.Struct, frozen=True, tag="leaving"):
    """It ends now by its own decision (the engine retired it, a fault of our own): no task is to blame."""

    why: str


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    """Nothing runs any more, and how what ran ended since the drain began."""

    finished: int
    released: int


ToWorker: TypeAlias = Hello | Drain | Hurry | StopRequested | Lost | HeartbeatAnswered | PublishAgain
FromWorker: TypeAlias = Ready | Published | RunStatistics | CannotLoad | Leaving | Drained

_encode = msgspec.json.Encoder().encode


def encode_line(message: object) -> bytes:
    """One message, framed. JSON escapes every line break inside it."""
    return _encode(message) + b"\n"


class Lines:
    """Makes messages of bytes as they come. It serves readers with a loop and without."""

    def __init__(self, kind: Any) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are now complete."""
        *complete, rest = data.split(b"\n")
        messages = []
        for line in complete:
            messages.append(self._decode(b"".join((*self._parts, line))))
            self._parts.clear()
            self._length = 0
        if rest:
            self._parts.append(rest)
            self._length += len(rest)
        if self._length > LINE_LIMIT:
            raise ValueError(f"a line of more than {LINE_LIMIT:,} bytes on a channel")
        return messages


class Channel(asyncio.Protocol):
    """One end of a channel, on a loop. Messages are handed to `receive` in the order in which they came."""

    def __init__(self, end: socket.socket, kind: Any, receive: Callable[[Any], None]) -> None:
        self._end = end
        self._lines = Lines(kind)
        self._receive = receive
        self._reading: asyncio.Transport
        self._sending: asyncio.Transport
        self._sends = True
        self._closing = False
        self.gone = asyncio.Event()
        """The peer has ended, or we have closed. Everything that it sent before was received."""

    @classmethod
    async def open(cls, end: socket.socket, kind: Any, receive: Callable[[Any], None]) -> "Channel":
        """Use this end of the socketpair, which belongs to the channel from now on. `kind`: what the peer
        sends."""
        end.setblocking(False)
        loop = asyncio.get_running_loop()
        channel = cls(end, kind, receive)
        second = end.dup()
        try:
            await loop.create_unix_connection(lambda: _Sending(channel), sock=second)
            channel._sending.pause_reading()  # uvloop begins to read after `connection_made`
        except BaseException:
            second.close()
            raise
        try:
            await loop.create_unix_connection(lambda: channel, sock=end)
        except BaseException:
            channel._sending.abort()
            raise
        return channel

    def send(self, message: object) -> bool:
        """Send without waiting. False: not sent, because the peer is gone or does not read."""
        sending = self._sending
        if sending.is_closing() or sending.get_write_buffer_size() > PENDING_LIMIT:
            return False
        sending.write(encode_line(message))
        return not sending.is_closing()

    def close(self) -> None:
        """Send what still waits, then close the connection. Nothing more is received."""
        self._closing = True
        self._sending.close()

    def sending_begins(self, transport: asyncio.Transport) -> None:
        self._sending = transport

    def sending_ended(self) -> None:
        """We have closed, or cannot send any more."""
        self._sends = False
        if self._closing:
            self._reading.close()
        else:
            with suppress(OSError):  # a peer that is still there sees the end, and ends: we read until then
                self._end.shutdown(socket.SHUT_WR)

    # asyncio.Protocol, of the transport that reads

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._reading = cast(asyncio.Transport, transport)  # uvloop's are not instances of it

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            for message in self._lines.feed(data):
                self._receive(message)

    def connection_lost(self, error: Exception | None) -> None:
        if self._sends:
            self._sending.abort()
        self.gone.set()


class _Sending(asyncio.Protocol):
    """The transport of a channel that sends. On uvloop it reads for a moment at its start."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        sending = cast(asyncio.Transport, transport)
        sending.pause_reading()
        self._channel.sending_begins(sending)

    def data_received(self, data: bytes) -> None:
        self._channel.data_received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._channel.sending_ended()


def receive_first(end: socket.socket, kind: type[T]) -> T:
    """The first message, before there is a loop. Not a byte more is read. `EOFError`: the peer is gone."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = end.recv(1)
        if not byte:
            raise EOFError("the channel ended before its first message")
        line += byte
    return msgspec.json.decode(line, type=kind)


def runs_of(runs: list[Run]) -> list[tuple[JobId, Fence]]:
    """Runs as the engine names them."""
    return [(bytes.fromhex(job), fence) for job, fence in runs]
