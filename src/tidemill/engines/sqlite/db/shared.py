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
    """What an engine gets."""

    store: SqliteStore
    post: LocalPubSub | SocketPubSub
    let_go: Callable[[], None]
    """To be called once, when the engine is closed. Blocks."""


class SharedStore:
    """One store, with those who use it."""

    def __init__(self, *, in_memory: bool) -> None:
        self.in_memory = in_memory
        self.opening = threading.Lock()
        """Held by whoever opens it: the others wait for that."""
        self.users = 0
        self.store: SqliteStore | None = None
        self.post: LocalPubSub | SocketPubSub | None = None
        self.namespace = ""
        self.file: FileId | None = None
        """The file that it was opened on; None: in memory."""

    def open(self, place: SqliteUrl, namespace: str, *, migrate: bool) -> None:
        """Open it, unless another has done so."""
        with self.opening:
            if self.store is None:
                self.store, self.post = open_store(place, namespace, migrate=migrate)
                self.namespace = namespace
                self.file = file_id(place)
            else:
                check_namespace(place, self.namespace, namespace)

    def close(self) -> None:
        """Its last user goes."""
        if self.store is not None and self.post is not None:
            _close(self.store, self.post)


class SharedStores:
    """All that can be shared. For any thread: engines open and close on threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Key, SharedStore] = {}

    def take(self, place: SqliteUrl, namespace: str, *, migrate: bool) -> "TakenStore":
        """The store of this place, opened if need be. Blocks for that long. Nameless memory is not shared."""
        if place.path is None and not place.name:
            store, post = open_store(place, namespace, migrate=migrate)
            return TakenStore(store, post, lambda: _close(store, post))
        key = _key(place, namespace)
        with self._lock:
            shared = self._shared.get(key)
            if shared is None or (shared.store is not None and shared.file != file_id(place)):
                shared = self._shared[key] = SharedStore(in_memory=place.path is None)
            shared.users += 1
        try:
            shared.open(place, namespace, migrate=migrate)
        except BaseException:
            self._release(key, shared)
            raise
        assert shared.store is not None
        assert shared.post is not None
        return TakenStore(shared.store, shared.post, lambda: self._release(key, shared))

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
    place: SqliteUrl, namespace: str, *, migrate: bool
) -> tuple[SqliteStore, LocalPubSub | SocketPubSub]:
    """A store of its own, and how it sends signals. Blocks."""
    post = pubsub_for(place)
    try:
        return SqliteStore(place, namespace=namespace, migrate=migrate, post=post), post
    except BaseException:
        post.close()
        raise


def _close(store: SqliteStore, post: LocalPubSub | SocketPubSub) -> None:
    store.close()
    post.close()


def file_id(place: SqliteUrl) -> FileId | None:
    """The file that is there now; None: in memory, or deleted."""
    if place.path is None:
        return None
    try:
        found = os.stat(place.path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _key(place: SqliteUrl, namespace: str) -> Key:
    if place.path is None:
        return place.name, namespace
    return os.path.realpath(place.path), place.durability, place.lock_timeout


stores = SharedStores()
"""Those of this process."""

os.register_at_fork(after_in_child=stores.after_fork)
