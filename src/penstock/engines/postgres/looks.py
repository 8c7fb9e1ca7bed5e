"""Looks behind the cursors, while this process claims.

Rows can come to stand behind a cursor without being marked as given back:

- a transaction drew its seq early and committed late: once a second, rows whose transaction was not visible
  in the snapshot of the look before the previous one. (A claim may be on its way during a look: it did not
  see the row, the look sees it before the cursor, and then the claim's answer moves the cursor past it. The
  next look finds it);
- a claim that was rolled back had them locked while another passed: once a lease, with jitter, everything
  from the start of each lane to the cursor.

Both mark what they find, so that every claim of every process sees it, and wake the workers.
"""

import asyncio
import random
from contextlib import suppress

import msgspec

from penstock.engines.postgres.cursors import Cursors
from penstock.engines.postgres.store import Store
from penstock.model.errors import EngineError
from penstock.model.member import LEASE
from penstock.model.time import SECOND, Span

LATE_S = 1.0

_encode = msgspec.json.Encoder().encode


class Looks:
    """The looks of one engine object."""

    def __init__(self, store: Store, cursors: Cursors) -> None:
        self._store = store
        self._cursors = cursors
        self._task: asyncio.Task[None] | None = None
        self._snapshots: list[str] = []
        """Of the last two looks."""
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
        with suppress(EngineError):
            await self.late()
        whole_in = self._lease_s()
        while True:
            await asyncio.sleep(LATE_S)
            whole_in -= LATE_S
            with suppress(EngineError):  # the next one looks again
                await self.late()
                if whole_in <= 0:
                    whole_in = self._lease_s()
                    await self.behind()

    async def late(self) -> None:
        """Find what committed late."""
        store, queues = self._store, self._cursors.names()
        if not self._snapshots:
            rows = await store.see_through(store.beats.fetch("SELECT pg_current_snapshot()::text"))
            self._snapshots = [rows[0][0]]
            return
        lanes = _encode([self._cursors.busy(queue) for queue in queues]).decode()
        row = await store.change(
            store.beats, "late_v1", queues, self._cursors.plain(queues), lanes, self._snapshots[0]
        )
        self._snapshots = [self._snapshots[-1], row[0]]

    async def behind(self) -> None:
        """Find what a claim that was rolled back left behind."""
        queues = self._cursors.names()
        self._cursors.forget_lanes()
        await self._store.change(self._store.beats, "behind_v1", queues, self._cursors.plain(queues))

    def _lease_s(self) -> float:
        return self.lease / SECOND * random.uniform(0.5, 0.9)
