"""One process's hold on one namespace: a few connections, each for its purpose, opened when first used.

| line | what goes over it |
|---|---|
| claims | claims, and settles that carry one |
| settles | settles, releases, notes |
| enqueues | new jobs, merged; firings: no chore may hold up a tick |
| commands | what people do, promote and prune, changes of schedules, signals published by hand |
| beats | members, leases |
| reads | looks at jobs and queues |
| listen | SUBSCRIBE |

So a process never has more than seven, and a long answer on one does not hold up a beat on another.
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from tidemill.engine.shared.in_flight import InFlight
from tidemill.engines.redis.call import Call
from tidemill.engines.redis.copies import NOT_WAITED_FOR, Copies
from tidemill.engines.redis.line import Line
from tidemill.engines.redis.naming import take_named
from tidemill.engines.redis.place import Place
from tidemill.engines.redis.post import Post
from tidemill.engines.redis.scripts import script
from tidemill.model.job import Fence
from tidemill.model.move import MOVES_LIMIT, Moves
from tidemill.model.time import SECOND, Instant, Span

T = TypeVar("T")

SHORTEST_PATIENCE_S = 1.0


class Store(InFlight):
    """The lines of one engine object, and the calls in flight on them."""

    def __init__(self, place: Place, *, flags: bool) -> None:
        super().__init__(place)
        self.place = place
        self._flags = flags
        """Whether the server reads the flags of a script."""
        self.top: Fence = 0
        """The highest fence that the server has given out, as far as this process knows."""
        self.claims = Line(place, "claims", self._abandon)
        self.settles = Line(place, "settles", self._abandon)
        self.enqueues = Line(place, "enqueues", self._abandon)
        self.commands = Line(place, "commands", self._abandon)
        self.beats = Line(place, "beats", self._abandon)
        self.reads = Line(place, "reads", self._abandon)
        self.post = Post(place, self.commands)
        if place.replicas:
            for line in self._lines:
                line.copies = Copies(place, script("mark", flags=flags))

    async def run(
        self, line: Line, name: str, call: Call, now: Instant | None = None, moves: Moves | None = None
    ) -> Any:
        """The answer of one of our scripts; `moves` gets what it names."""
        if moves is None:
            return await self.see_through(self.send(line, name, call, now))
        call.values["naming"] = MOVES_LIMIT
        answer, named, unnamed = await self.see_through(self.send(line, name, call, now))
        take_named(moves, named, unnamed)
        return answer

    async def send(self, line: Line, name: str, call: Call, now: Instant | None) -> Any:
        """The same, without regard to cancellation."""
        moment = b"" if now is None else b"%d" % now
        arguments: tuple[bytes | str, ...] = (self.place.channels, moment, call.encoded(), *call.blobs)
        what = script(name, flags=self._flags)
        copied = what.writes and name not in NOT_WAITED_FOR
        if copied and line is self.beats and line.copies is not None:
            line = self.commands  # beats need not wait for replicas, nor behind somebody who does
        return await line.run(what, arguments, copied=copied)

    def _abandon(self) -> None:
        """This server cannot be written to, as after a failover: every connection is made anew."""
        for line in self._lines:
            line.leave()
        self.post.leave_server()

    def saw(self, fences: Iterable[Fence]) -> None:
        """The server has given these out."""
        self.top = max(self.top, max(fences, default=0))

    def beat_within(self, lease: Span) -> None:
        """A beat that is not answered is given up while there is time for another on a new connection; nor
        does it wait longer for a connect, which goes on for the next."""
        patience_s = max(SHORTEST_PATIENCE_S, lease / SECOND / 2)
        self.beats.patience_s = self.beats.within_s = min(self.beats.patience_s, patience_s)

    async def now(self) -> Instant:
        seconds, micros = await self.see_through(self.reads.command("TIME"))
        return int(seconds) * SECOND + int(micros)

    async def erase(self) -> None:
        """Delete every key of the namespace. The mark goes last: until then a second try finds its way."""
        prefix = self.place.prefix  # nothing in it that a pattern would read
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
        await self.post.close()
        for line in self._lines:
            await line.close()

    @property
    def _lines(self) -> tuple[Line, ...]:
        return self.claims, self.settles, self.enqueues, self.commands, self.beats, self.reads

    @property
    def trips(self) -> int:
        """Round trips of calls so far, for tests."""
        return sum(line.trips for line in self._lines)
