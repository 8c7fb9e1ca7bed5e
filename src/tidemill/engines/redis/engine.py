"""The engine object: its facets, and opening and closing."""

import asyncio

from tidemill.engines.redis.cluster.flat import KEEPS
from tidemill.engines.redis.cluster.leases import RedisLeases
from tidemill.engines.redis.cluster.members import RedisMembers
from tidemill.engines.redis.cluster.queues import RedisQueues, RedisTasks
from tidemill.engines.redis.cluster.schedules import RedisSchedules
from tidemill.engines.redis.db.connect import hang_up, open_connection
from tidemill.engines.redis.db.errors import translate_opening
from tidemill.engines.redis.db.schema import prepare
from tidemill.engines.redis.db.scripts import load_all
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.jobs.jobs import RedisJobs
from tidemill.engines.redis.pubsub.signals import RedisSignals
from tidemill.engines.redis.read.inspect import RedisInspect
from tidemill.engines.redis.url import parse_url
from tidemill.model.queues.queue import Keep
from tidemill.model.time import Instant


class RedisEngine:
    """See `tidemill.engine.protocol.Engine`."""

    def __init__(self, store: RedisStore) -> None:
        self.store = store
        self._closed = False
        self.jobs = RedisJobs(store)
        self.blocking = None
        self.inspect = RedisInspect(store)
        self.queues = RedisQueues(store)
        self.tasks = RedisTasks(store)
        self.schedules = RedisSchedules(store)
        self.leases = RedisLeases(store)
        self.members = RedisMembers(store)
        self.signals = RedisSignals(store)
        self.transactions = None

    @property
    def name(self) -> str:
        return str(self.store.url)

    @property
    def single_process(self) -> bool:
        return False

    @property
    def keeps(self) -> Keep:
        return KEEPS

    async def now(self) -> Instant:
        return await self.store.now()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.store.close()


async def open_engine(url: str, *, namespace: str, migrate: bool = True) -> RedisEngine:
    """See `tidemill.engine.protocol.OpenEngine`."""
    parsed = parse_url(url, namespace)
    connection = None
    try:
        connection = await open_connection(parsed, "commands")
        async with asyncio.timeout(parsed.call_timeout):
            flags = await prepare(connection, parsed, migrate=migrate)
    except BaseException as error:
        if connection is not None:
            await hang_up(connection)
        if not isinstance(error, Exception):
            raise
        raise translate_opening(error, parsed) from None
    load_all(flags=flags)
    store = RedisStore(parsed, flags=flags)
    store.commands.adopt(connection)
    return RedisEngine(store)


async def erase(url: str, *, namespace: str) -> None:
    """See `tidemill.engine.registry.erase`. Only keys that are ours, a few at a time: other clients are not
    held up."""
    engine = await open_engine(url, namespace=namespace, migrate=False)
    try:
        await engine.store.erase()
    finally:
        await engine.close()
