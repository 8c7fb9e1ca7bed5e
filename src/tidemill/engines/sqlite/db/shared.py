"""The stores of this process, shared: however many engines a program opens on one file, one thread writes.

A program with an embedded worker that also enqueues from threads and uses `async with app:` opens four
engines on one file: for the worker, its heartbeat, the threads and the block. With a store each, four
writers wait for one another's locks, and none of them shares a commit with the others. So engines share the
store of their file, which is closed with the last of them.

**Which file** is decided by its real path, and by the file that is there now: if the file was deleted or
replaced while a store was open, the next engine gets a store on the new file.

**Options** in the URL (`durability`, `lock_timeout`) are promises to callers that one connection cannot keep
in two ways. So engines with different options on one file keep their own stores, as different processes
would.

**Forks.** A file's store stays behind in the parent: the child opens its own. A named database in memory
cannot be opened a second time, so the child still finds the parent's store, which refuses every call there.
"""

import os
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tidemill.engines.sqlite.cluster.signals import LocalPubSub, SocketPubSub, pubsub_for
from tidemill.engines.sqlite.db.schema import check_namespace
from tidemill.engines.sqlite.db.store import SqliteStore
from tidemill.engines.sqlite.url import SqliteUrl

Key: TypeAlias = tuple[object, ...]
FileId: TypeAlias = tuple[int, int]


class TakenStore(NamedTuple):
    """A store that an engine uses, and what goes with it."""

    store: SqliteStore
    pubsub: LocalPubSub | SocketPubSub
    let_go: Callable[[], None]
    """To be called once, when the engine is closed. Blocks."""


class SharedStore:
    """One store, and how many engines use it."""

    def __init__(self, *, in_memory: bool) -> None:
        self.in_memory = in_memory
        self.opening = threading.Lock()
        """Held by the thread that opens it: the others wait for that."""
        self.users = 0
        self.store: SqliteStore | None = None
        self.pubsub: LocalPubSub | SocketPubSub | None = None
        self.namespace = ""
        self.file: FileId | None = None
        """The file that it was opened on; None: in memory."""

    def open(self, url: SqliteUrl, namespace: str, *, migrate: bool) -> None:
        """Open it, unless another has done so."""
        with self.opening:
            if self.store is None:
                self.store, self.pubsub = open_store(url, namespace, migrate=migrate)
                self.namespace = namespace
                self.file = file_id(url)
            else:
                check_namespace(url, self.namespace, namespace)

    def close(self) -> None:
        """Its last user goes."""
        if self.store is not None and self.pubsub is not None:
            _close(self.store, self.pubsub)


class SharedStores:
    """All that can be shared. For any thread: engines open and close on threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Key, SharedStore] = {}

    def take(self, url: SqliteUrl, namespace: str, *, migrate: bool) -> "TakenStore":
        """The store of this database, opened if need be: blocks so long. Nameless memory is not shared."""
        if url.path is None and not url.name:
            store, pubsub = open_store(url, namespace, migrate=migrate)
            return TakenStore(store, pubsub, lambda: _close(store, pubsub))
        key = _key(url, namespace)
        with self._lock:
            shared = self._shared.get(key)
            if shared is None or (shared.store is not None and shared.file != file_id(url)):
                shared = self._shared[key] = SharedStore(in_memory=url.path is None)
            shared.users += 1
        try:
            shared.open(url, namespace, migrate=migrate)
        except BaseException:
            self._release(key, shared)
            raise
        assert shared.store is not None
        assert shared.pubsub is not None
        return TakenStore(shared.store, shared.pubsub, lambda: self._release(key, shared))

    def after_fork(self) -> None:
        """In the child: any lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        for key, shared in list(self._shared.items()):
            shared.opening = threading.Lock()
            if shared.store is None or not shared.in_memory:
                del self._shared[key]

    def _release(self, key: Key, shared: SharedStore) -> None:
        with self._lock:
            shared.users -= 1
            last = shared.users == 0
            if last and self._shared.get(key) is shared:  # else the file was replaced, or this is a child
                del self._shared[key]
        if last:
            shared.close()


def open_store(
    url: SqliteUrl, namespace: str, *, migrate: bool
) -> tuple[SqliteStore, LocalPubSub | SocketPubSub]:
    """A store of its own, and how it sends signals. Blocks."""
    pubsub = pubsub_for(url)
    try:
        return SqliteStore(url, namespace=namespace, migrate=migrate, pubsub=pubsub), pubsub
    except BaseException:
        pubsub.close()
        raise


def _close(store: SqliteStore, pubsub: LocalPubSub | SocketPubSub) -> None:
    store.close()
    pubsub.close()


def file_id(url: SqliteUrl) -> FileId | None:
    """The file that is there now; None: in memory, or deleted."""
    if url.path is None:
        return None
    try:
        found = os.stat(url.path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _key(url: SqliteUrl, namespace: str) -> Key:
    if url.path is None:
        return url.name, namespace
    return os.path.realpath(url.path), url.durability, url.lock_timeout


stores = SharedStores()
"""Those of this process."""

os.register_at_fork(after_in_child=stores.after_fork)
