"""Finds ready jobs that claims have passed, while this process claims.

A claim begins its search at a cursor, so it does not see a ready job below it. Such jobs exist for two
reasons:

- A late commit: a transaction drew a seq, a claim passed that seq, then the transaction committed.
- A rolled-back claim: it had the job locked while another claim passed.

Once a second, a scan does three things.

1. It notes which transactions are open: its snapshot.
2. It asks for the jobs of transactions that were open at the last scan and have ended since, however long ago
   their seqs were drawn.
3. It goes through what claims have passed since the last scan: in each lane from `scanned until` to the
   cursor.

Every ready job that it finds is marked (`job.back`). Every claim of every process sees marked jobs, and the
workers are woken. A job that a transaction has locked at that moment is requested by its id, until it is
taken or marked.

Nothing is missed. Step 3 misses only jobs whose transactions were open during the scan. A transaction that
began after the scan draws seqs that no claim had passed by then: they are above `scanned until`. A
transaction that was open is in the scan's snapshot, or lies between the snapshot's newest ended transaction
and the scan's own, of which a snapshot says nothing. The next scan asks for both.

    scan      snapshot, scan                             snapshot, scan
    cursor    ------------->|----------------------------->|
    X         draws seq 5 ......... commits                 finds 5: X was open at the scan before
    Y                         draws seq 90 .. commits       finds 90: it is above `scanned until`

This depends on two facts. A transaction has its xid before it draws a seq: that is the order in which jobs
are stored. And the server is the same one: see `Cursors.forget`. Behind a pooler a connection outlives the
server; there the moment of the server's start shows it.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

import msgspec

from tidemill.engine.ending import end
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.order.cursors import Cursors
from tidemill.engines.postgres.order.scanned_until import ScannedUntil, SeqRange
from tidemill.model.errors import EngineError
from tidemill.model.member import LEASE
from tidemill.model.time import MILLISECOND, SECOND, Span

SCAN_S = 1.0
REST_S = 0.1
"""Until the next scan, if one has left jobs to mark: heartbeats have their turn in between."""
NEW_BUDGET: Span = 200 * MILLISECOND
"""How long a scan goes through new ranges, on the connection of the heartbeats. The next one goes on
there."""
OLD_BUDGET: Span = 20 * MILLISECOND
"""How long it goes through old ranges."""
HELD_MOST = 5_000
"""How many locked jobs are remembered. With more of them a lane's `scanned until` stays where it is; lanes in
which nothing is locked go on."""
LATE_MOST = 5_000
"""How many jobs of ended transactions one scan marks. A large transaction takes several scans."""
ALL_EVERY = 50
"""Everything is scanned again once in this many leases."""

log = logging.getLogger("tidemill.engine")
_encode = msgspec.json.Encoder().encode


class LateCommits:
    """The scans of one engine object."""

    def __init__(self, store: PostgresStore, cursors: Cursors) -> None:
        self._store = store
        self._cursors = cursors
        self._scanned = ScannedUntil(cursors)
        self._task: asyncio.Task[None] | None = None
        self._generation = cursors.generation
        """Of the cursors, when the values below were noted."""
        self._snapshot: str | None = None
        self._me: str | None = None
        """Of the last scan: which transactions were open, and its own transaction."""
        self._held: list[bytes] = []
        """Jobs that a transaction had locked."""
        self._server: int | None = None
        self._leases = 0
        self.lease: Span = LEASE
        """The shortest lease of the members that send heartbeats here."""

    def begin(self) -> None:
        """Called with every claim: from now on there are cursors."""
        if self._task is None:
            self._store.check()
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            await end(self._task)

    async def _run(self) -> None:
        lease_in = self._lease_s()
        while True:
            pause = SCAN_S
            try:
                pause = await self.scan()
                if lease_in <= 0:
                    lease_in = self._lease_s()
                    await self.once_a_lease()
            except EngineError:
                pass  # the next scan goes on where this one began
            except Exception:
                log.exception("a scan for late commits failed; the next one comes in a second")
            await asyncio.sleep(pause)
            lease_in -= pause

    async def scan(self) -> float:
        """Find the ready jobs that claims have passed. Returns the seconds until the next scan."""
        cursors, scanned = self._cursors, self._scanned
        if self._generation != cursors.generation:
            self._start_over()
        generation, queues = cursors.generation, cursors.names()
        new = scanned.new()  # as far as claims were known to be before the snapshot is taken
        lanes = _encode([cursors.busy(queue) for queue in queues]).decode()
        late = await self._store.change(
            self._store.heartbeats, "late_commits_v1",
            queues, cursors.plain(queues), lanes, self._snapshot, self._me, self._held, LATE_MOST,
        )  # fmt: skip
        snapshot, me, server, held, more, signals = late
        if self._server not in (None, server):
            cursors.forget()
        self._server = server
        if generation != cursors.generation:
            return SCAN_S
        self._snapshot, self._me, self._held = snapshot, me, held
        if more:  # the transactions that are open now were not noted: nothing may count as scanned
            return (
                REST_S if signals else SCAN_S
            )  # no signals: what is left is locked, and will be for a while
        reached = await self._scan(generation, new, NEW_BUDGET)
        if reached is not None:
            scanned.scanned_new(new, reached)
        old = scanned.old()
        reached = await self._scan(generation, old, OLD_BUDGET)
        if reached is not None:
            scanned.scanned_old(old, reached)
        return SCAN_S

    async def once_a_lease(self) -> None:
        """Move jobs out of groups that their queue does not have any more; sometimes, scan everything
        again."""
        self._cursors.forget_quiet_lanes()
        self._leases += 1
        if self._leases % ALL_EVERY == 0:
            self._scanned.scan_again()
        await self._store.change(self._store.heartbeats, "move_strays_v1", self._cursors.names())

    async def _scan(self, generation: int, ranges: Sequence[SeqRange], budget: Span) -> Sequence[int] | None:
        """Up to where each range was scanned. None: nothing was, or it does not count."""
        if not ranges:
            return None
        lanes = [each.lane for each in ranges]
        row: Row = await self._store.change(
            self._store.heartbeats, "scan_behind_v1",
            [lane.queue for lane in lanes], [lane.priority for lane in lanes], [lane.group for lane in lanes],
            [each.begin for each in ranges], [each.end for each in ranges], budget,
            max(0, HELD_MOST - len(self._held)),
        )  # fmt: skip
        if generation != self._cursors.generation:
            return None
        self._held = list({*self._held, *row[1]})
        reached: Sequence[int] = row[0]
        return reached

    def _start_over(self) -> None:
        self._generation = self._cursors.generation
        self._scanned.forget()
        self._snapshot, self._me, self._held = None, None, []

    def _lease_s(self) -> float:
        return self.lease / SECOND * random.uniform(0.5, 0.9)
