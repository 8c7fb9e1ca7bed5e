"""The `leases` facet: named leases."""

from tidemill.engine.shared.checks import check_acquire, check_lock, check_number, check_text
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.model.time import Instant, Span
from tidemill.model.view import Lease

SQL = load_statements("tidemill.engines.postgres", "leases")


class PostgresLeases:
    """See `tidemill.engine.protocol.LeasesFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def acquire(self, name: str, *, holder: str, ttl: Span, now: Instant | None = None) -> Lease | None:
        check_acquire(name, holder, ttl)
        store = self._store
        rows = await store.rows(store.heartbeats, "acquire_v1", name, holder, ttl, now)
        return Lease(name=name, holder=holder, fence=rows[0][0], expires_at=rows[0][1]) if rows else None

    async def renew(self, name: str, *, fence: int, ttl: Span, now: Instant | None = None) -> bool:
        check_lock(name, ttl)
        check_number(fence, "a fence")
        return await self._write(SQL.renew, name, fence, ttl, now)

    async def release(self, name: str, *, fence: int, now: Instant | None = None) -> bool:
        check_text(name, "a lock's name")
        check_number(fence, "a fence")
        return await self._write(SQL.release, name, fence, now)

    async def list(self, *, now: Instant | None = None) -> "list[Lease]":
        # Every process that changes jobs asks this once a second: over a connection that it has open anyway.
        store = self._store
        rows = await store.see_through(store.commands.fetch(store.sql(SQL.list), now, reads=True))
        return [
            Lease(name=name, holder=holder, fence=fence, expires_at=expires_at)
            for name, holder, fence, expires_at in rows
        ]

    async def _write(self, sql: str, *parameters: object) -> bool:
        rows = await self._store.see_through(self._store.heartbeats.fetch(self._store.sql(sql), *parameters))
        return bool(rows)
