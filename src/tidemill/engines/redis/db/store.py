"""One process's hold on one namespace: a few connections, each for its purpose, opened when first used.

| connection | what goes over it |
|---|---|
| claims | claims, and settles that carry one |
| settles | settles, releases, notes |
| enqueues | new jobs, merged; firings: no chore may hold up a tick |
| commands | what people do, promote and prune, changes of schedules, signals published by hand |
| heartbeats | members, leases |
| reads | reads of jobs and queues |
| listen | SUBSCRIBE |

So a process never has more than seven, and a long answer on one connection does not hold up a heartbeat on
another.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from tidemill.engine.shared.calls.in_flight import InFlight
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.connection import RedisConnection
from tidemill.engines.redis.db.copies import NOT_WAITED_FOR, Copies
from tidemill.engines.redis.db.scripts import script
from tidemill.engines.redis.jobs.naming import take_named
from tidemill.engines.redis.pubsub.pubsub import RedisPubSub
from tidemill.engines.redis.url import RedisUrl
from tidemill.model.jobs.job import Fence
from tidemill.model.jobs.move import MOVES_LIMIT, Moves
from tidemill.model.time import SECOND, Instant, Span

T = TypeVar("T")


class RedisStore(InFlight):
    """The connections of one engine object, and the calls in flight on them."""

    def __init__(self, url: RedisUrl, *, flags: bool) -> None:
        super().__init__(url)
        self.url = url
        self._flags = flags
        """Whether the server reads the flags of a script."""
        self.top: Fence = 0
        """The highest fence that the server has handed out, as far as this process knows."""
        self.claims = RedisConnection(url, "claims", self._abandon)
        self.settles = RedisConnection(url, "settles", self._abandon)
        self.enqueues = RedisConnection(url, "enqueues", self._abandon)
        self.commands = RedisConnection(url, "commands", self._abandon)
        self.heartbeats = RedisConnection(url, "heartbeats", self._abandon)
        self.reads = RedisConnection(url, "reads", self._abandon)
        self.pubsub = RedisPubSub(url, self.commands)
        if url.replicas:
            for connection in self._connections:
                connection.copies = Copies(url, script("mark", flags=flags))

    async def run(
        self,
        connection: RedisConnection,
        name: str,
        call: ScriptCall,
        now: Instant | None = None,
        moves: Moves | None = None,
    ) -> Any:
        """The answer of one of our scripts; `moves` gets what it names."""
        if moves is None:
            return await self.see_through(self.send(connection, name, call, now))
        call.values["naming"] = MOVES_LIMIT
        answer, named, unnamed = await self.see_through(self.send(connection, name, call, now))
        take_named(moves, named, unnamed)
        return answer

    async def send(
        self, connection: RedisConnection, name: str, call: ScriptCall, now: Instant | None
    ) -> Any:
        """The same, but a cancelled caller cancels the call."""
        moment = b"" if now is None else b"%d" % now
        arguments: tuple[bytes | str, ...] = (self.url.channels, moment, call.encoded(), *call.blobs)
        what = script(name, flags=self._flags)
        copied = what.writes and name not in NOT_WAITED_FOR
        if copied and connection is self.heartbeats and connection.copies is not None:
            connection = self.commands  # heartbeats need not wait for replicas, nor behind a call that does
        return await connection.run(what, arguments, copied=copied)

    def _abandon(self) -> None:
        """This server cannot be written to, as after a failover: every connection is made anew."""
        for connection in self._connections:
            connection.leave()
        self.pubsub.leave_server()

    def saw(self, fences: Iterable[Fence]) -> None:
        """The server has handed these out."""
        self.top = max(self.top, max(fences, default=0))

    def heartbeat_within(self, lease: Span) -> None:
        """A heartbeat without an answer is given up while there is time for another one on a new connection.
        It does not wait longer for a connect either; that connect goes on, for the next heartbeat."""
        self.heartbeats.hurry(lease)

    async def now(self) -> Instant:
        seconds, micros = await self.see_through(self.reads.command("TIME"))
        return int(seconds) * SECOND + int(micros)

    async def erase(self) -> None:
        """Delete every key of the namespace. The mark goes last: until then a second try finds its way."""
        prefix = self.url.prefix  # nothing in it that a pattern would read
        cursor, mark = b"0", f"{prefix}meta".encode()
        while True:
            cursor, keys = await self.see_through(
                self.commands.command("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", 1_000)
            )
            if keys := [key for key in keys if key != mark]:
                await self.see_through(self.commands.command("UNLINK", *keys))
            if cursor == b"0":
                break
        await self.see_through(self.commands.command("UNLINK", mark))

    async def close(self) -> None:
        """Take no more calls, finish those already made, hang up."""
        await self.finish()
        await self.pubsub.close()
        for connection in self._connections:
            await connection.close()

    @property
    def _connections(self) -> tuple[RedisConnection, ...]:
        return self.claims, self.settles, self.enqueues, self.commands, self.heartbeats, self.reads

    @property
    def trips(self) -> int:
        """Round trips of calls so far, for tests."""
        return sum(connection.trips for connection in self._connections)
