"""The engine object: its facets, and opening and closing."""

import asyncio
import threading
import time
from functools import partial

from tidemill.engines.sqlite.cluster.leases import SqliteLeases
from tidemill.engines.sqlite.cluster.members import SqliteMembers
from tidemill.engines.sqlite.cluster.queues import SqliteQueues, SqliteTasks
from tidemill.engines.sqlite.cluster.schedules import SqliteSchedules
from tidemill.engines.sqlite.cluster.signals import SqliteSignals
from tidemill.engines.sqlite.db.shared import TakenStore, stores
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs.jobs import SqliteBlocking, SqliteJobs
from tidemill.engines.sqlite.read.inspect import SqliteInspect
from tidemill.engines.sqlite.transactions import SqliteTransactions
from tidemill.engines.sqlite.url import SqliteUrl, parse_url
from tidemill.model.queues.queue import KEEP_ENDED, Keep
from tidemill.model.time import Instant


class SqliteEngine:
    """See `tidemill.engine.protocol.Engine`."""

    def __init__(self, url: SqliteUrl, taken: TakenStore) -> None:
        self._session = session = StoreSession(taken.store, url)
        self._let_go = taken.let_go
        self._closed = False
        self.jobs = SqliteJobs(session)
        self.blocking = SqliteBlocking(session)
        self.inspect = SqliteInspect(session)
        self.queues = SqliteQueues(session)
        self.tasks = SqliteTasks(session)
        self.schedules = SqliteSchedules(session)
        self.leases = SqliteLeases(session)
        self.members = SqliteMembers(session)
        self.signals = SqliteSignals(session, taken.pubsub)
        self.transactions = None if self.single_process else SqliteTransactions(session)

    @property
    def name(self) -> str:
        return str(self._session.url)

    @property
    def single_process(self) -> bool:
        return self._session.url.path is None

    @property
    def keeps(self) -> Keep:
        return KEEP_ENDED

    async def now(self) -> Instant:
        self._session.check()
        return time.time_ns() // 1_000

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                await self.signals.close()
                await self._session.close()
            finally:  # also where the closing is cancelled
                await asyncio.to_thread(self._let_go)


async def open_engine(url: str, *, namespace: str, migrate: bool = True) -> SqliteEngine:
    """See `tidemill.engine.protocol.OpenEngine`."""
    parsed, loop = parse_url(url), asyncio.get_running_loop()
    taking = loop.run_in_executor(None, partial(stores.take, parsed, namespace, migrate=migrate))
    try:
        taken = await asyncio.shield(taking)
    except asyncio.CancelledError:  # the store would count a user that is gone
        taking.add_done_callback(_let_go_of)
        raise
    return SqliteEngine(parsed, taken)


def _let_go_of(taking: "asyncio.Future[TakenStore]") -> None:
    if not taking.cancelled() and taking.exception() is None:
        threading.Thread(target=taking.result().let_go).start()
