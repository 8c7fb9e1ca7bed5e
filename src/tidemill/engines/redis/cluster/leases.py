"""The `leases` facet: named leases."""

from tidemill.engine.shared.checks import check_acquire, check_lock, check_number, check_text
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.model.time import Instant, Span
from tidemill.model.view import Lease


class RedisLeases:
    """See `tidemill.engine.protocol.LeasesFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def acquire(self, name: str, *, holder: str, ttl: Span, now: Instant | None = None) -> Lease | None:
        check_acquire(name, holder, ttl)
        call = ScriptCall(name=name, holder=holder, ttl=ttl)
        lease = await self._store.run(self._store.heartbeats, "acquire", call, now)
        return None if lease is None else Lease(name=name, holder=holder, fence=lease[0], expires_at=lease[1])

    async def renew(self, name: str, *, fence: int, ttl: Span, now: Instant | None = None) -> bool:
        check_lock(name, ttl)
        check_number(fence, "a fence")
        call = ScriptCall(name=name, fence=fence, ttl=ttl)
        return bool(await self._store.run(self._store.heartbeats, "renew", call, now))

    async def release(self, name: str, *, fence: int, now: Instant | None = None) -> bool:
        check_text(name, "a lock's name")
        check_number(fence, "a fence")
        call = ScriptCall(name=name, fence=fence)
        return bool(await self._store.run(self._store.heartbeats, "unlock", call, now))

    async def list(self, *, now: Instant | None = None) -> "list[Lease]":
        # Every process that changes jobs asks this once a second: over a connection that it has open anyway.
        found = await self._store.run(self._store.commands, "leases", ScriptCall(), now)
        leases = [
            Lease(name=name.decode(), holder=holder.decode(), fence=fence, expires_at=expires_at)
            for name, holder, fence, expires_at in found
        ]
        return sorted(leases, key=lambda lease: lease.name)
