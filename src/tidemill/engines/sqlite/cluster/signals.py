"""The `signals` facet: datagrams between the processes that share a file.

Each subscription binds a Unix datagram socket in a folder whose name is a hash of the file's path, in
the system's temporary folder; publishing sends one datagram to each socket found there (14
microseconds, p50). Nothing waits: a socket whose buffer is full drops the signal, one whose owner
died is removed. Commits that come without a signal (a user's own transaction, a process with another
temporary folder) are noticed within a second by `PRAGMA data_version`, which costs 2 microseconds a check.
In memory there is one process, and a signal is a call.

A kernel keeps few datagrams for a socket that is not read (10, by default). So that a flood of events never
costs a worker its wake-up, events go only to the sockets of those who want them, and only these get them:
their names say so.
"""

import asyncio
import hashlib
import os
import socket
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tidemill.engine.shared.calls.inbox import Inbox
from tidemill.engine.shared.checks import check_signal
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.url import SqliteUrl
from tidemill.model.event import EVENTS_TOPIC, Signal

DATAGRAM_LIMIT = 64 << 10
TEXT_LIMIT = 60_000
"""Of one signal; the rest is for its topic."""
SEND_BUFFER = 1 << 20
"""What may wait, unread, of all that we have sent; the system may allow less."""
ONLY_EVENTS, ALSO_EVENTS = ".events", ".all"
"""How the name of a socket ends that wants events alone, or events too."""


class Versions:
    """Whether any process has written to the file since the last check."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
        self._seen: int | None = None

    async def changed(self) -> bool:
        before, self._seen = self._seen, await self._session.read(_version)
        return before != self._seen


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA data_version").fetchone()
    return int(version)


class LocalPubSub:
    """Signals within one process."""

    def __init__(self) -> None:
        self._inboxes: set[Inbox] = set()

    def has_listeners(self) -> bool:
        return bool(self._inboxes)

    def send(self, signals: Iterable[Signal]) -> None:
        for inbox in tuple(self._inboxes):
            for signal in signals:
                with suppress(RuntimeError):  # its loop was closed
                    inbox.loop.call_soon_threadsafe(inbox.deliver, signal)

    async def open_inbox(self, topics: tuple[str, ...], session: StoreSession) -> Inbox:
        inbox = Inbox(topics, leave=self._inboxes.discard)
        self._inboxes.add(inbox)
        return inbox

    def close(self) -> None:
        self._inboxes.clear()


class SocketPubSub:
    """Signals between the processes that share a file."""

    def __init__(self, path: str) -> None:
        self._folder = _folder(path)
        self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._out.setblocking(False)
        self._out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._listing = _NO_LISTING

    def has_listeners(self) -> bool:
        return bool(self._list().addresses)

    def send(self, signals: Iterable[Signal]) -> None:
        messages: list[bytes] = []
        events: list[bytes] = []
        for signal in signals:
            message = f"{signal.topic}\n{signal.text}".encode()[:DATAGRAM_LIMIT]
            (events if signal.topic == EVENTS_TOPIC else messages).append(message)
        listing = self._list()
        if messages:
            self._send(messages, listing.addresses)
        if events:
            self._send(events, listing.for_events)

    def _send(self, messages: list[bytes], addresses: Sequence[str]) -> None:
        for address in addresses:
            for message in messages:
                try:
                    self._out.sendto(message, address)
                except (ConnectionRefusedError, FileNotFoundError):  # its owner died
                    with suppress(OSError):
                        os.unlink(address)
                    break
                except OSError:  # its buffer is full, or it is not ours to write: signals may be lost
                    break

    async def open_inbox(self, topics: tuple[str, ...], session: StoreSession) -> Inbox:
        pid, loop = os.getpid(), asyncio.get_running_loop()
        address = str(self._folder / f"{pid}-{os.urandom(4).hex()}{_ending(topics)}")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        with suppress(OSError):  # without an address only the check is left: later, and never wrong
            self._folder.mkdir(mode=0o700, exist_ok=True)
            sock.bind(address)

        def leave(_: Inbox) -> None:
            if os.getpid() == pid:  # in a forked child all this is still the parent's
                loop.remove_reader(sock.fileno())
                with suppress(OSError):
                    os.unlink(address)
            sock.close()

        versions = Versions(session)
        inbox = Inbox(topics, leave=leave, poll=versions.changed)
        loop.add_reader(sock.fileno(), _receive, sock, inbox)
        try:
            await versions.changed()  # from here on changes count
        except BaseException:
            await inbox.close()
            raise
        return inbox

    def close(self) -> None:
        self._out.close()

    def _list(self) -> "_Listing":
        """Who listens: the folder is listed again only when it changed. The writer and every loop of the
        process send at once, so a listing is replaced as a whole."""
        listing = self._listing
        try:
            changed_at = os.stat(self._folder).st_mtime_ns
            if changed_at != listing.at:
                found = [entry.path for entry in os.scandir(self._folder)]
                listing = _Listing(
                    changed_at,
                    [path for path in found if not path.endswith(ONLY_EVENTS)],
                    [path for path in found if path.endswith((ONLY_EVENTS, ALSO_EVENTS))],
                )
        except OSError:
            listing = _NO_LISTING
        self._listing = listing
        return listing


class _Listing(NamedTuple):
    """The sockets in the folder of a file."""

    at: int
    """When the folder last changed, by the time that it carries itself."""
    addresses: Sequence[str]
    for_events: Sequence[str]


_NO_LISTING = _Listing(-1, (), ())


def _ending(topics: tuple[str, ...]) -> str:
    if EVENTS_TOPIC not in topics:
        return ""
    return ONLY_EVENTS if set(topics) == {EVENTS_TOPIC} else ALSO_EVENTS


def _receive(sock: socket.socket, inbox: Inbox) -> None:
    with suppress(BlockingIOError):
        while True:
            topic, _, text = sock.recv(DATAGRAM_LIMIT).decode(errors="replace").partition("\n")
            inbox.deliver(Signal(topic, text))


def _folder(path: str) -> Path:
    name = hashlib.blake2b(os.path.realpath(path).encode(), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir(), f"tidemill-{name}")


def pubsub_for(url: SqliteUrl) -> LocalPubSub | SocketPubSub:
    """How the processes that use a database signal one another."""
    return LocalPubSub() if url.path is None else SocketPubSub(url.path)


class SqliteSignals:
    """See `tidemill.engine.protocol.SignalsFacet`."""

    def __init__(self, session: StoreSession, pubsub: LocalPubSub | SocketPubSub) -> None:
        self._session = session
        self._pubsub = pubsub
        self._open: set[Inbox] = set()

    @property
    def room(self) -> int:
        return TEXT_LIMIT

    async def publish(self, topic: str, text: str = "") -> None:
        self._session.check()
        check_signal(topic, text)
        self._pubsub.send([Signal(topic, text)])

    async def subscribe(self, *topics: str) -> Inbox:
        self._session.check()
        self._open = {inbox for inbox in self._open if not inbox.closed}
        inbox = await self._pubsub.open_inbox(topics, self._session)
        self._open.add(inbox)
        return inbox

    async def close(self) -> None:
        """End every subscription that is still open."""
        for inbox in self._open:
            await inbox.close()
        self._open.clear()
