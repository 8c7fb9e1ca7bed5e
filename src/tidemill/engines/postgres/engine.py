"""The engine object: its facets, and opening and closing."""

from tidemill.engines.postgres.cluster.leases import PostgresLeases
from tidemill.engines.postgres.cluster.members import PostgresMembers
from tidemill.engines.postgres.cluster.queues import PostgresQueues, PostgresTasks
from tidemill.engines.postgres.cluster.schedules import PostgresSchedules
from tidemill.engines.postgres.db.connect import PostgresConnector
from tidemill.engines.postgres.db.errors import translate_opening
from tidemill.engines.postgres.db.schema import prepare
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs.claim import ClaimMemory
from tidemill.engines.postgres.jobs.jobs import PostgresJobs
from tidemill.engines.postgres.order.late_commits import LateCommits
from tidemill.engines.postgres.pubsub.signals import PostgresSignals
from tidemill.engines.postgres.read.inspect import PostgresInspect
from tidemill.engines.postgres.transactions import PostgresTransactions
from tidemill.engines.postgres.url import parse_url
from tidemill.model.queues.queue import KEEP_ENDED, Keep
from tidemill.model.time import Instant


class PostgresEngine:
    """See `tidemill.engine.protocol.Engine`."""

    def __init__(self, store: PostgresStore, identity: str) -> None:
        claims = ClaimMemory()
        self.store = store
        store.renewed.add(claims.cursors.forget)
        self.late_commits = LateCommits(store, claims.cursors)
        self._closed = False
        self.jobs = PostgresJobs(store, claims, self.late_commits)
        self.blocking = None
        self.inspect = PostgresInspect(store)
        self.queues = PostgresQueues(store)
        self.tasks = PostgresTasks(store)
        self.schedules = PostgresSchedules(store)
        self.leases = PostgresLeases(store)
        self.members = PostgresMembers(store, self.late_commits)
        self.signals = PostgresSignals(store)
        self.transactions = PostgresTransactions(store, identity)

    @property
    def name(self) -> str:
        return str(self.store.url)

    @property
    def single_process(self) -> bool:
        return False

    @property
    def keeps(self) -> Keep:
        return KEEP_ENDED

    async def now(self) -> Instant:
        return await self.store.now()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.late_commits.close()
            await self.store.close()


async def open_engine(url: str, *, namespace: str, migrate: bool = True) -> PostgresEngine:
    """See `tidemill.engine.protocol.OpenEngine`."""
    parsed = parse_url(url, namespace)
    connector = PostgresConnector(parsed)
    try:
        connection = await connector.first("commands")
    except Exception as error:
        raise translate_opening(error, parsed) from None
    try:
        identity = await prepare(connection, parsed, migrate=migrate)
    except BaseException:
        connection.terminate()
        raise
    store = PostgresStore(connector)
    store.commands.adopt(connection)
    return PostgresEngine(store, identity)


async def erase(url: str, *, namespace: str) -> None:
    """See `tidemill.engine.registry.erase`. Only a schema that is ours is dropped."""
    engine = await open_engine(url, namespace=namespace, migrate=False)
    try:
        await engine.store.commands.use(
            lambda connection: connection.execute(f'DROP SCHEMA "{namespace}" CASCADE')
        )
    finally:
        await engine.close()
