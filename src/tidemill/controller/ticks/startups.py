"""Start-ups: the jobs that run once for every start of the cluster.

`model.schedules.generation` says what a start is. The generation is kept as a named lease that never runs out
by itself. Its holder is the moment at which the generation began. Its end, less the ttl, is the last moment
at which a controller saw the generation alive.

A controller that finds the generation over replaces the lease. If it dies between release and acquire, no
lease is left, and the next controller takes that for a start as well.

The tick of a start-up is the beginning of the generation. If the last tick of a schedule is older than that,
it has not run in this generation. So a start-up that a deploy adds to a running cluster runs when the first
worker declares it.

An engine that has lost its data has lost the generation, too: start-ups run again, under live workers. (The
records of the members are lost with it, so nothing here could tell that from a first start.)

If two controllers judge at once, both find one lease, and one of them replaces it. The other is refused and
checks again.
"""

import logging
from collections.abc import Sequence

from tidemill.controller.ticks.snapshot import ScheduleSnapshot
from tidemill.model.member import MemberRecord
from tidemill.model.schedules.firing import job_of
from tidemill.model.schedules.generation import goes_on, live_workers
from tidemill.model.schedules.schedule import Startup
from tidemill.model.time import DAY, Instant, Span
from tidemill.model.view import CLUSTER_LEASE, Lease

TTL: Span = 365 * DAY
"""Longer than any cluster goes without a check."""

log = logging.getLogger("tidemill.controller")


class Startups:
    """Fires start-ups. All state is in the engine."""

    async def run(self, seen: ScheduleSnapshot, members: Sequence[MemberRecord]) -> None:
        """Fire what has not run in this generation."""
        startups = [each for each in seen.schedules if isinstance(each.timing, Startup)]
        workers = live_workers(members)
        if not startups or not workers:
            return
        began = await self._generation(seen, workers)
        if began is None:
            return
        for schedule in startups:
            ran = schedule.last_at is not None and schedule.last_at >= began
            if ran or not schedule.fires or not seen.term.trusted():
                continue
            fired = await seen.engine.schedules.fire(
                schedule.name,
                tick=schedule.next_at,
                before=schedule.last_at,
                next_at=None,
                jobs=[job_of(schedule, began)],
                last_at=began,
                version=schedule.version,
                now=seen.at,
            )
            if fired is not None:
                log.info("the cluster has started: %s runs", schedule.name)

    async def _generation(self, seen: ScheduleSnapshot, workers: Sequence[MemberRecord]) -> Instant | None:
        """When the present generation began; None: that is not known yet."""
        leases = seen.engine.leases
        lease = next((each for each in await leases.list(now=seen.at) if each.name == CLUSTER_LEASE), None)
        same = goes_on(workers, None if lease is None else lease.expires_at - TTL)
        if same is None:
            return None
        if same and lease is not None:
            await leases.renew(CLUSTER_LEASE, fence=lease.fence, ttl=TTL, now=seen.at)
            return int(lease.holder)
        return await self._begin(seen, lease)

    async def _begin(self, seen: ScheduleSnapshot, former: Lease | None) -> Instant | None:
        leases = seen.engine.leases
        if former is not None:
            await leases.release(CLUSTER_LEASE, fence=former.fence, now=seen.at)
        lease = await leases.acquire(CLUSTER_LEASE, holder=str(seen.now), ttl=TTL, now=seen.at)
        return None if lease is None else seen.now  # None: another controller was first
