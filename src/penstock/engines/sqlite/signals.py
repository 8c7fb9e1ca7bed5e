"""The `signals` facet: datagrams between the processes that share a file.

Each subscription binds a Unix datagram socket in a folder whose name is a hash of the file's path, in
the system's temporary folder; publishing sends one datagram to each socket found there (14
microseconds, p50). Nothing waits: a socket whose buffer is full drops the signal, one whose owner
died is removed. Commits that come without a signal (a user's own transaction, a process with another
temporary folder) are noticed within a second by `PRAGMA data_version`, which costs 2 microseconds a look.
In memory there is one process, and a signal is a call.
"""

import asyncio
import hashlib
import os
import socket
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from penstock.engine.inbox import Inbox
from penstock.engines.sqlite.place import Place
from penstock.engines.sqlite.store import Session
from penstock.model.event import Signal

DATAGRAM_LIMIT = 4_096


class Versions:
    """Whether somebody has written to the file since the last look."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: int | None = None

    async def changed(self) -> bool:
        before, self._seen = self._seen, await self._session.read(_version)
        return before != self._seen


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA data_version").fetchone()
    return int(version)


class LocalPost:
    """Signals within one process."""

    def __init__(self) -> None:
        self._inboxes: set[Inbox] = set()

    def heard(self) -> bool:
        return bool(self._inboxes)

    def send(self, signals: Iterable[Signal]) -> None:
        for inbox in tuple(self._inboxes):
            for signal in signals:
                with suppress(RuntimeError):  # its loop was closed
                    inbox.loop.call_soon_threadsafe(inbox.deliver, signal)

    async def open_inbox(self, topics: tuple[str, ...], session: Session) -> Inbox:
        inbox = Inbox(topics, leave=self._inboxes.discard)
        self._inboxes.add(inbox)
        return inbox

    def close(self) -> None:
        self._inboxes.clear()


class SocketPost:
    """Signals between the processes that share a file."""

    def __init__(self, path: str) -> None:
        self._folder = _folder(path)
        self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._out.setblocking(False)
        self._listed_at = -1
        self._addresses: list[str] = []

    def heard(self) -> bool:
        return bool(self._present())

    def send(self, signals: Iterable[Signal]) -> None:
        messages = [f"{signal.topic}\n{signal.text}".encode()[:DATAGRAM_LIMIT] for signal in signals]
        for address in self._present():
            for message in messages:
                try:
                    self._out.sendto(message, address)
                except (ConnectionRefusedError, FileNotFoundError):  # its owner died
                    with suppress(OSError):
                        os.unlink(address)
                    break
                except OSError:  # its buffer is full, or it is not ours to write: signals may be lost
                    break

    async def open_inbox(self, topics: tuple[str, ...], session: Session) -> Inbox:
        pid, loop = os.getpid(), asyncio.get_running_loop()
        address = str(self._folder / f"{pid}-{os.urandom(4).hex()}")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        with suppress(OSError):  # without an address only the look is left: later, and never wrong
            self._folder.mkdir(mode=0o700, exist_ok=True)
            sock.bind(address)

        def leave(_: Inbox) -> None:
            if os.getpid() == pid:  # in a forked child all this is still the parent's
                loop.remove_reader(sock.fileno())
                with suppress(OSError):
                    os.unlink(address)
            sock.close()

        versions = Versions(session)
        inbox = Inbox(topics, leave=leave, look=versions.changed)
        loop.add_reader(sock.fileno(), _receive, sock, inbox)
        try:
            await versions.changed()  # from here on changes count
        except BaseException:
            await inbox.close()
            raise
        return inbox

    def close(self) -> None:
        self._out.close()

    def _present(self) -> list[str]:
        """Who listens: the folder is listed again only when it changed."""
        try:
            changed_at = os.stat(self._folder).st_mtime_ns
            if changed_at != self._listed_at:
                self._addresses = [entry.path for entry in os.scandir(self._folder)]
                self._listed_at = changed_at
        except OSError:
            self._addresses, self._listed_at = [], -1
        return self._addresses


def _receive(sock: socket.socket, inbox: Inbox) -> None:
    with suppress(BlockingIOError):
        while True:
            topic, _, text = sock.recv(DATAGRAM_LIMIT).decode(errors="replace").partition("\n")
            inbox.deliver(Signal(topic, text))


def _folder(path: str) -> Path:
    name = hashlib.blake2b(os.path.realpath(path).encode(), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir(), f"penstock-{name}")


def post_for(place: Place) -> LocalPost | SocketPost:
    """How the processes of a place signal one another."""
    return LocalPost() if place.path is None else SocketPost(place.path)


class SqliteSignals:
    """See `penstock.engine.protocol.Signals`."""

    def __init__(self, session: Session, post: LocalPost | SocketPost) -> None:
        self._session = session
        self._post = post
        self._open: set[Inbox] = set()

    async def publish(self, topic: str, text: str = "") -> None:
        self._session.check()
        self._post.send([Signal(topic, text)])

    async def subscribe(self, *topics: str) -> Inbox:
        self._session.check()
        self._open = {inbox for inbox in self._open if not inbox.closed}
        inbox = await self._post.open_inbox(topics, self._session)
        self._open.add(inbox)
        return inbox

    async def close(self) -> None:
        """End every subscription that is still open."""
        for inbox in self._open:
            await inbox.close()
        self._open.clear()
