"""One process's hold on one namespace: a few connections, each for its purpose, opened when first used.

| connection | what goes over it |
|---|---|
| claims | claims, and settles that carry one |
| settles | settles, releases, notes |
| enqueues | new jobs, merged; firings: no chore may hold up a tick |
| commands | what people do, promote and prune, changes of schedules |
| heartbeats | members, leases, scans behind the cursors |
| reads | reads of jobs and queues, on two connections |
| signals, listen | NOTIFY and LISTEN |

So an engine object never has more than nine, and a slow read or a burst of one kind does not hold up a
heartbeat. (For the heartbeats a second connect may be under way, while the first takes longer than a
heartbeat has time.)
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tidemill.engine.shared.calls.in_flight import InFlight
from tidemill.engines.postgres.db.connect import Connection, PostgresConnector
from tidemill.engines.postgres.db.connection import PostgresConnection, Row
from tidemill.engines.postgres.jobs.naming import marks_of, take_named, values_of
from tidemill.engines.postgres.pubsub.pubsub import PostgresPubSub
from tidemill.model.jobs.move import Moves
from tidemill.model.time import Instant, Span

T = TypeVar("T")

READERS = 2


class PostgresStore(InFlight):
    """The connections of one engine object, and the calls in flight on them."""

    def __init__(self, connector: PostgresConnector) -> None:
        super().__init__(connector.url)
        self.url = connector.url
        self.renewed: set[Callable[[], None]] = set()
        """Called when claims or heartbeats have another connection: the server may not be the one that it
        was."""
        self.claims = PostgresConnection(connector, "claims", self._renew)
        self.settles = PostgresConnection(connector, "settles")
        self.enqueues = PostgresConnection(connector, "enqueues")
        self.commands = PostgresConnection(connector, "commands")
        self.heartbeats = PostgresConnection(connector, "heartbeats", self._renew)
        self._readers = [PostgresConnection(connector, "reads") for _ in range(READERS)]
        self.pubsub = PostgresPubSub(connector)

    def _renew(self) -> None:
        for forget in self.renewed:
            forget()

    def sql(self, text: str) -> str:
        """A statement for this namespace: `{schema}` stands before every name of ours."""
        return text.replace("{schema}", f'"{self.url.schema}"')

    async def call(self, connection: PostgresConnection, function: str, *parameters: object) -> Row:
        """Call one of our functions that answers one row."""
        return await self.see_through(
            connection.row(self._calling(function, parameters), *values_of(parameters))
        )

    async def change(
        self, connection: PostgresConnection, function: str, *parameters: object, moves: Moves | None = None
    ) -> Row:
        """The same; its last column has the signals, which are published, and what it names."""
        row = await self.call(connection, function, *parameters)
        self.pubsub.send(take_named(row[-1], moves))
        return row

    async def rows(self, connection: PostgresConnection, function: str, *parameters: object) -> Sequence[Row]:
        """Call one of our functions that answers many rows."""
        return await self.see_through(
            connection.fetch(self._calling(function, parameters), *values_of(parameters))
        )

    def _calling(self, function: str, parameters: Sequence[object]) -> str:
        return self.sql(f"SELECT * FROM {{schema}}.{function}({marks_of(parameters)})")

    async def read(self, sql: str, *parameters: object) -> Sequence[Row]:
        """The rows of one read."""
        return await self.see_through(self._reader().fetch(self.sql(sql), *parameters, reads=True))

    async def snapshot(self, work: "Callable[[Connection[Any]], Awaitable[T]]") -> T:
        """Several reads of one snapshot: the state of one moment."""

        async def whole(connection: "Connection[Any]") -> T:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await work(connection)

        return await self.see_through(self._reader().use(whole, reads=True))

    def _reader(self) -> PostgresConnection:
        """A free connection if there is one, the first before the others."""
        return next((connection for connection in self._readers if not connection.busy), self._readers[-1])

    def heartbeat_within(self, lease: Span) -> None:
        """A heartbeat without an answer is given up while there is time for another one on a new connection.
        It does not wait longer for a connect either; that connect goes on, for the next heartbeat."""
        self.heartbeats.hurry(lease)

    async def now(self) -> Instant:
        rows = await self.read("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(rows[0][0])

    async def close(self) -> None:
        """Take no more calls, finish those already made, hang up."""
        await self.finish()
        await self.pubsub.close()
        for connection in (
            self.claims,
            self.settles,
            self.enqueues,
            self.commands,
            self.heartbeats,
            *self._readers,
        ):
            await connection.close()

    @property
    def trips(self) -> int:
        """Round trips of calls so far, for tests."""
        connections = (
            self.claims,
            self.settles,
            self.enqueues,
            self.commands,
            self.heartbeats,
            *self._readers,
        )
        return sum(connection.trips for connection in connections)
