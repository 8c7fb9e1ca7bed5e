"""The `leases` facet: named leases."""

import time

from tidemill.engine.shared.checks import check_acquire, check_lock, check_number, check_text
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.time import Instant, Span
from tidemill.model.view import Lease

SQL = load_statements("tidemill.engines.sqlite", "leases")


class SqliteLeases:
    """See `tidemill.engine.protocol.LeasesFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def acquire(self, name: str, *, holder: str, ttl: Span, now: Instant | None = None) -> Lease | None:
        check_acquire(name, holder, ttl)
        return await self._session.write(lambda step: _acquire(step, name, holder, ttl), now)

    async def renew(self, name: str, *, fence: int, ttl: Span, now: Instant | None = None) -> bool:
        check_lock(name, ttl)
        check_number(fence, "a fence")
        return await self._session.write(
            lambda step: step.db.execute(SQL.renew, (step.now + ttl, name, fence, step.now)).rowcount == 1,
            now,
        )

    async def release(self, name: str, *, fence: int, now: Instant | None = None) -> bool:
        check_text(name, "a lock's name")
        check_number(fence, "a fence")
        return await self._session.write(
            lambda step: step.db.execute(SQL.release, (name, fence, step.now)).rowcount == 1, now
        )

    async def list(self, *, now: Instant | None = None) -> "list[Lease]":
        at = time.time_ns() // 1_000 if now is None else now
        found = await self._session.read(lambda db: db.execute(SQL.list, (at,)).fetchall())
        return [_lease(*row) for row in found]


def _acquire(step: Step, name: str, holder: str, ttl: Span) -> Lease | None:
    row = step.db.execute(SQL.find, (name, step.now)).fetchone()
    if row is not None and row[0] != holder:
        return None
    fence = step.draw_fences(1) if row is None else row[1]
    lease = _lease(name, holder, fence, step.now + ttl)
    step.db.execute(SQL.put, (name, holder, fence, lease.expires_at))
    return lease


def _lease(name: str, holder: str, fence: int, expires_at: Instant) -> Lease:
    return Lease(name=name, holder=holder, fence=fence, expires_at=expires_at)
