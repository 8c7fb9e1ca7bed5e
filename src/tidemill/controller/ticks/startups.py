"""Start-ups: the jobs that run once for every start of the cluster.

What a start is, is said in `model.generation`. The generation is kept as a named lease that never runs out by
itself: its holder is the moment at which the generation began, and its end, less the ttl, the last moment at
which somebody saw it alive. Whoever finds that it is over replaces the lease; dying in between leaves none,
which the next one takes for a start as well.

The tick of a start-up is the generation's beginning. A schedule whose last tick is older than that has not
run in this generation: one that a deploy adds to a running cluster runs when the first worker brings it.

An engine that has lost its data has lost the generation, too: start-ups run again, under live workers. (The
members' records are lost with it, so nothing here could tell that from a first start.)

Two controllers that judge at once find one lease, and one of them replaces it; the other is refused and looks
again.
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
"""Longer than anybody looks at it."""

log = logging.getLogger("tidemill.controller")


class Startups:
    """It keeps nothing that the engine does not."""

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
                now=seen.at,
            )
            if fired is not None:
                log.info("the cluster has started: %s runs", schedule.name)

    async def _generation(self, seen: ScheduleSnapshot, workers: Sequence[MemberRecord]) -> Instant | None:
        """When the present one began; None: it cannot be told yet."""
        locks = seen.engine.locks
        lease = next((each for each in await locks.list(now=seen.at) if each.name == CLUSTER_LEASE), None)
        same = goes_on(workers, None if lease is None else lease.expires_at - TTL)
        if same is None:
            return None
        if same and lease is not None:
            await locks.renew(CLUSTER_LEASE, fence=lease.fence, ttl=TTL, now=seen.at)
            return int(lease.holder)
        return await self._begin(seen, lease)

    async def _begin(self, seen: ScheduleSnapshot, former: Lease | None) -> Instant | None:
        locks = seen.engine.locks
        if former is not None:
            await locks.release(CLUSTER_LEASE, fence=former.fence, now=seen.at)
        lease = await locks.acquire(CLUSTER_LEASE, holder=str(seen.now), ttl=TTL, now=seen.at)
        return None if lease is None else seen.now  # None: another controller was first
