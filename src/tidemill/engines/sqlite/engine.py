"""The engine object: its facets, and opening and closing."""

import asyncio
import threading
import time
from collections.abc import Callable

from tidemill.engines.sqlite.inspect import SqliteInspect
from tidemill.engines.sqlite.jobs import SqliteBlocking, SqliteJobs
from tidemill.engines.sqlite.locks import SqliteLocks
from tidemill.engines.sqlite.members import SqliteMembers
from tidemill.engines.sqlite.queues import SqliteQueues, SqliteTasks
from tidemill.engines.sqlite.schedules import SqliteSchedules
from tidemill.engines.sqlite.signals import LocalPubSub, SocketPubSub, SqliteSignals, pubsub_for
from tidemill.engines.sqlite.store import Session, Store
from tidemill.engines.sqlite.transactions import SqliteTransactions
from tidemill.engines.sqlite.url import SqliteUrl, parse_url
from tidemill.model.queue import KEEP_ENDED, Keep
from tidemill.model.time import Instant


class SqliteEngine:
    """See `tidemill.engine.protocol.Engine`."""

    def __init__(self, store: Store, post: LocalPubSub | SocketPubSub, let_go: Callable[[], None]) -> None:
        self._session = session = Session(store)
        self._let_go = let_go
        self._closed = False
        self.jobs = SqliteJobs(session)
        self.blocking = SqliteBlocking(session)
        self.inspect = SqliteInspect(session)
        self.queues = SqliteQueues(session)
        self.tasks = SqliteTasks(session)
        self.schedules = SqliteSchedules(session)
        self.locks = SqliteLocks(session)
        self.members = SqliteMembers(session)
        self.signals = SqliteSignals(session, post)
        self.transactions = None if self.single_process else SqliteTransactions(session)

    @property
    def name(self) -> str:
        return str(self._session.place)

    @property
    def single_process(self) -> bool:
        return self._session.place.path is None

    @property
    def keeps(self) -> Keep:
        return KEEP_ENDED

    async def now(self) -> Instant:
        self._session.check()
        return time.time_ns() // 1_000

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.signals.close()
            self._session.close()
            await asyncio.to_thread(self._let_go)


class _Shared:
    """Named in-memory databases of this process: the last engine that closes lets the data go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # engines open on loops and close on threads
        self._stores: dict[tuple[str, str], tuple[Store, LocalPubSub | SocketPubSub, int]] = {}

    def take(self, place: SqliteUrl, namespace: str) -> tuple[Store, LocalPubSub | SocketPubSub]:
        name = place.name, namespace
        with self._lock:
            store, post, users = self._stores.get(name, (None, None, 0))
            if store is None or post is None:
                store, post = _open(place, namespace, migrate=True)
            self._stores[name] = store, post, users + 1
        return store, post

    def give_back(self, place: SqliteUrl, namespace: str) -> None:
        name = place.name, namespace
        with self._lock:
            store, post, users = self._stores.pop(name)
            if users > 1:
                self._stores[name] = store, post, users - 1
        if users == 1:
            store.close()
            post.close()


_shared = _Shared()


def _open(place: SqliteUrl, namespace: str, *, migrate: bool) -> tuple[Store, LocalPubSub | SocketPubSub]:
    post = pubsub_for(place)
    try:
        return Store(place, namespace=namespace, migrate=migrate, post=post), post
    except BaseException:
        post.close()
        raise


async def open_engine(url: str, *, namespace: str, migrate: bool = True) -> SqliteEngine:
    """See `tidemill.engine.protocol.OpenEngine`."""
    place = parse_url(url)
    if place.name:
        store, post = _shared.take(place, namespace)
        return SqliteEngine(store, post, lambda: _shared.give_back(place, namespace))
    store, post = await asyncio.to_thread(_open, place, namespace, migrate=migrate)

    def let_go() -> None:
        store.close()
        post.close()

    return SqliteEngine(store, post, let_go)
