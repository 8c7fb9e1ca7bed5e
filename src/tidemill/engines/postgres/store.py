"""One process's hold on one namespace: a few connections, each for its purpose, opened when first used.

| line | what goes over it |
|---|---|
| claims | claims, and settles that carry one |
| settles | settles, releases, notes |
| enqueues | new jobs, merged; firings: no chore may hold up a tick |
| commands | what people do, promote and prune, changes of schedules |
| beats | members, leases, looks behind the cursors |
| reads | looks at jobs and queues, on two lines |
| signals, listen | NOTIFY and LISTEN |

So an engine object never has more than nine, and a slow read or a burst of one kind does not hold up a beat.
(For the beats a second connect may be under way, while the first takes longer than a beat has time.)
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from tidemill.engine.shared.in_flight import InFlight
from tidemill.engines.postgres.dial import Connection, Dial
from tidemill.engines.postgres.line import Line, Row
from tidemill.engines.postgres.naming import marks_of, take_named, values_of
from tidemill.engines.postgres.post import Post
from tidemill.model.move import Moves
from tidemill.model.time import SECOND, Instant, Span

T = TypeVar("T")

READERS = 2
SHORTEST_PATIENCE_S = 1.0
"""A busy machine may take this long for a beat, whatever the lease."""


class Store(InFlight):
    """The lines of one engine object, and the calls in flight on them."""

    def __init__(self, dial: Dial) -> None:
        super().__init__(dial.place)
        self.place = dial.place
        self.renewed: set[Callable[[], None]] = set()
        """Called when claims or beats have another connection: the server may not be the one that it was."""
        self.claims = Line(dial, "claims", self._renew)
        self.settles = Line(dial, "settles")
        self.enqueues = Line(dial, "enqueues")
        self.commands = Line(dial, "commands")
        self.beats = Line(dial, "beats", self._renew)
        self._readers = [Line(dial, "reads") for _ in range(READERS)]
        self.post = Post(dial)

    def _renew(self) -> None:
        for forget in self.renewed:
            forget()

    def sql(self, text: str) -> str:
        """A statement for this namespace: `{schema}` stands before every name of ours."""
        return text.replace("{schema}", f'"{self.place.schema}"')

    async def call(self, line: Line, function: str, *parameters: object) -> Row:
        """Call one of our functions that answers one row."""
        return await self.see_through(line.row(self._calling(function, parameters), *values_of(parameters)))

    async def change(self, line: Line, function: str, *parameters: object, moves: Moves | None = None) -> Row:
        """The same; its last column has the signals, which are published, and what it names."""
        row = await self.call(line, function, *parameters)
        self.post.send(take_named(row[-1], moves))
        return row

    async def rows(self, line: Line, function: str, *parameters: object) -> Sequence[Row]:
        """Call one of our functions that answers many rows."""
        return await self.see_through(line.fetch(self._calling(function, parameters), *values_of(parameters)))

    def _calling(self, function: str, parameters: Sequence[object]) -> str:
        return self.sql(f"SELECT * FROM {{schema}}.{function}({marks_of(parameters)})")

    async def read(self, sql: str, *parameters: object) -> Sequence[Row]:
        """Rows of one look."""
        return await self.see_through(self._reader().fetch(self.sql(sql), *parameters, reads=True))

    async def look(self, work: "Callable[[Connection[Any]], Awaitable[T]]") -> T:
        """Several looks at one moment's state."""

        async def whole(connection: "Connection[Any]") -> T:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await work(connection)

        return await self.see_through(self._reader().use(whole, reads=True))

    def _reader(self) -> Line:
        """A free line if there is one, the first before the others."""
        return next((line for line in self._readers if not line.busy), self._readers[-1])

    def beat_within(self, lease: Span) -> None:
        """A beat that is not answered is given up while there is time for another on a new connection; nor
        does it wait longer for a connect, which goes on for the next."""
        patience_s = max(SHORTEST_PATIENCE_S, lease / SECOND / 2)
        self.beats.patience_s = self.beats.within_s = min(self.beats.patience_s, patience_s)

    async def now(self) -> Instant:
        rows = await self.read("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(rows[0][0])

    async def close(self) -> None:
        """Take no more calls, finish those already made, hang up."""
        await self.finish()
        await self.post.close()
        for line in (self.claims, self.settles, self.enqueues, self.commands, self.beats, *self._readers):
            await line.close()

    @property
    def trips(self) -> int:
        """Round trips of calls so far, for tests."""
        lines = (self.claims, self.settles, self.enqueues, self.commands, self.beats, *self._readers)
        return sum(line.trips for line in lines)
