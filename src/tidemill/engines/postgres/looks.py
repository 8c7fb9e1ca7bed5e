"""Looks behind the cursors, while this process claims.

Jobs can come to stand behind a cursor without being marked as given back:

- a claim that was rolled back had them locked while another passed;
- a transaction drew a seq, and a claim passed it before the commit.

Once a second a look takes note of the transactions that run, and then walks what claims have passed since
the last look, from each lane's floor to its cursor (see `floors`). Whatever it finds ready there is marked,
so that every claim of every process sees it, and the workers are woken. What somebody has locked at that
moment is asked for by its id until it is taken or marked.

The walk misses only what was not committed at that moment. A transaction that began after the look draws
seqs that no claim had passed then: they are not below the floor. One that was open is known by the look's
snapshot, or lies between that and the look's own transaction, which a snapshot says nothing about: the first
look after its end asks for its jobs by transaction, however long ago their seqs were drawn.

    look      snapshot, walk                             snapshot, walk
    cursor    ------------->|----------------------------->|
    X         draws seq 5 ......... commits                 finds 5: X was open at the look before
    Y                         draws seq 90 .. commits       finds 90: it is above the floor

That rests on the order in which jobs are stored: a transaction has its xid before it draws a seq. And it
rests on the server being the same one: see `Cursors.forget`. Behind a pooler connections outlive the
server; then another moment of its start tells.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

import msgspec

from tidemill.engines.postgres.connection import Row
from tidemill.engines.postgres.cursors import Cursors
from tidemill.engines.postgres.floors import Floors, Stretch
from tidemill.engines.postgres.store import PostgresStore
from tidemill.model.errors import EngineError
from tidemill.model.member import LEASE
from tidemill.model.time import MILLISECOND, SECOND, Span

LOOK_S = 1.0
REST_S = 0.1
"""Until the next look, where one has left something to mark: beats have their turn in between."""
NEW_BUDGET: Span = 200 * MILLISECOND
"""How long a look walks what is new, on the line of the beats; then it goes on at the next one."""
OLD_BUDGET: Span = 20 * MILLISECOND
"""And what is below the floors."""
HELD_MOST = 5_000
"""So many jobs that somebody has locked are kept in mind; then no floor rises over more of them, until there
are fewer. Lanes in which nothing is locked go on."""
LATE_MOST = 5_000
"""So many jobs of transactions that have ended are marked by a look; those of a large one, by several."""
WHOLE_EVERY = 50
"""Of the looks that come once a lease, those that have everything walked from its start."""

log = logging.getLogger("tidemill.engine")
_encode = msgspec.json.Encoder().encode


class Looks:
    """The looks of one engine object."""

    def __init__(self, store: PostgresStore, cursors: Cursors) -> None:
        self._store = store
        self._cursors = cursors
        self._floors = Floors(cursors)
        self._task: asyncio.Task[None] | None = None
        self._generation = cursors.generation
        """Of the cursors, when the rest was found."""
        self._snapshot: str | None = None
        self._me: str | None = None
        """Of the last look: who ran then, and its own transaction."""
        self._held: list[bytes] = []
        """Jobs that were locked then."""
        self._server: int | None = None
        self._leases = 0
        self.lease: Span = LEASE
        """The shortest lease of the members that beat here."""

    def begin(self) -> None:
        """Called with every claim: there will be cursors."""
        if self._task is None:
            self._store.check()
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        lease_in = self._lease_s()
        while True:
            pause = LOOK_S
            try:
                pause = await self.look()
                if lease_in <= 0:
                    lease_in = self._lease_s()
                    await self.once_a_lease()
            except EngineError:
                pass  # the next one looks again
            except Exception:
                log.exception("a look for late jobs has failed; the next one comes in a second")
            await asyncio.sleep(pause)
            lease_in -= pause

    async def look(self) -> float:
        """Find what stands behind the cursors. Returns the seconds until the next look."""
        cursors, floors = self._cursors, self._floors
        if self._generation != cursors.generation:
            self._begin_anew()
        generation, queues = cursors.generation, cursors.names()
        new = floors.new()  # as far as claims were known to have gone before the snapshot is taken
        lanes = _encode([cursors.busy(queue) for queue in queues]).decode()
        late = await self._store.change(
            self._store.beats, "late_v1",
            queues, cursors.plain(queues), lanes, self._snapshot, self._me, self._held, LATE_MOST,
        )  # fmt: skip
        snapshot, me, server, held, more, signals = late
        if self._server not in (None, server):
            cursors.forget()
        self._server = server
        if generation != cursors.generation:
            return LOOK_S
        self._snapshot, self._me, self._held = snapshot, me, held
        if more:  # of the transactions that run now no note was taken: no floor may rise over their jobs
            return REST_S if signals else LOOK_S  # what is locked will be so for a while
        reached = await self._walk(generation, new, NEW_BUDGET)
        if reached is not None:
            floors.rise(new, reached)
        old = floors.old()
        reached = await self._walk(generation, old, OLD_BUDGET)
        if reached is not None:
            floors.walked(old, reached)
        return LOOK_S

    async def once_a_lease(self) -> None:
        """Find jobs that stand in groups of a queue without any; now and then, have everything walked."""
        self._cursors.forget_quiet_lanes()
        self._leases += 1
        if self._leases % WHOLE_EVERY == 0:
            self._floors.look_again()
        await self._store.change(self._store.beats, "astray_v1", self._cursors.names())

    async def _walk(
        self, generation: int, stretches: Sequence[Stretch], budget: Span
    ) -> Sequence[int] | None:
        """Up to where each was walked; None: that says nothing."""
        if not stretches:
            return None
        lanes = [stretch.lane for stretch in stretches]
        row: Row = await self._store.change(
            self._store.beats, "behind_v1",
            [lane.queue for lane in lanes], [lane.priority for lane in lanes], [lane.group for lane in lanes],
            [stretch.begin for stretch in stretches], [stretch.end for stretch in stretches], budget,
            max(0, HELD_MOST - len(self._held)),
        )  # fmt: skip
        if generation != self._cursors.generation:
            return None
        self._held = list({*self._held, *row[1]})
        reached: Sequence[int] = row[0]
        return reached

    def _begin_anew(self) -> None:
        self._generation = self._cursors.generation
        self._floors.forget()
        self._snapshot, self._me, self._held = None, None, []

    def _lease_s(self) -> float:
        return self.lease / SECOND * random.uniform(0.5, 0.9)
