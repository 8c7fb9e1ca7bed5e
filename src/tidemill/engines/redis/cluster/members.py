"""The `members` facet.

**Lost data.** Redis may be restarted without its file, or be replaced by a replica that lagged. A heartbeat
notices that by two numbers which this member knows. One is the number of its last heartbeat: the member's
record must have it, and the counter of all heartbeats must have reached it. The other is the highest fence
that its process has got or holds: the counter of fences must have reached it. A claim notices lost data by
the number of the claimant's last claim that brought jobs. The call that notices it changes the epoch, a token
that every heartbeat answers (see `epoch.lua`), and notes the time for `storage`. Each member that knew
another epoch gets `rolled_back`. If only new jobs were lost, but no heartbeat and no claim, it is not
noticed.

**A server that evicts** is refused when an engine is opened. Its policy may change later: heartbeats check
it.
"""

import logging
import time
from collections.abc import Sequence

from tidemill.engine.shared.checks import check_heartbeat, check_member
from tidemill.engine.shared.heartbeats import plausible
from tidemill.engine.shared.records import encode_member, member_of
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.schema import VERSION, eviction, evicts
from tidemill.engines.redis.db.store import RedisStore
from tidemill.model.jobs.move import Moves
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo, MemberRecord, StopRequest
from tidemill.model.stats.batch import StatsBatch, whole_queues
from tidemill.model.time import Instant

REMIND_S = 600.0
"""How often the same trouble is logged."""

log = logging.getLogger("tidemill.engine")


class RedisMembers:
    """See `tidemill.engine.protocol.MembersFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._seen: dict[bytes, int] = {}
        """The number of each member's last heartbeat that was answered."""
        self._epochs: dict[bytes, str] = {}
        """The epoch that each member was answered then."""
        self._warned_at: float | None = None

    async def heartbeat(
        self,
        info: MemberInfo,
        claimants: Sequence[ClaimantHeartbeat] = (),
        *,
        statistics: StatsBatch | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> HeartbeatReply:
        check_heartbeat(info, claimants, statistics)
        encoded = encode_member(info)
        claimants, never = plausible(claimants)
        self._store.heartbeat_within(info.lease)
        call = ScriptCall(
            name=info.name,
            heartbeat=info.heartbeat,
            lease=info.lease,
            claimants=[(each.answered_through, each.held) for each in claimants],
            seen=self._seen.get(info.id, 0),
            epoch=self._epochs.get(info.id),
            top=self._store.top,
            version=VERSION,
        )
        if statistics is not None:
            rows = [*whole_queues(statistics.rows), *statistics.rows]
            call.values["batch"] = statistics.number
            call.values["stats"] = [(row.queue, row.task, row.packed) for row in rows]
        call.add(info.id, encoded, *(each.claimant for each in claimants))
        answer = await self._store.run(self._store.heartbeats, "heartbeat", call, now, moves)
        number, at, new, lost, stops, epoch, rolled_back, policy, options = answer
        self._seen[info.id], self._epochs[info.id] = number, epoch.decode()
        self._store.saw({fence for each in claimants for fence in each.held}.difference(lost))
        self._check_policy(policy.decode())
        return HeartbeatReply(
            number=number,
            now=at,
            new=new == 1,
            lost=[*lost, *never],
            stop_requests=[StopRequest(job_id, fence) for job_id, fence in stops],
            options=options,
            rolled_back=rolled_back == 1,
        )

    def _check_policy(self, policy: str) -> None:
        """Log an error, every `REMIND_S`, while the server evicts keys."""
        if not evicts(policy):
            if self._warned_at is not None:
                log.info("%s keeps its keys again (maxmemory-policy %s)", self._store.url, policy)
            self._warned_at = None
        elif self._warned_at is None or time.monotonic() - self._warned_at >= REMIND_S:
            self._warned_at = time.monotonic()
            log.error("%s", eviction(policy, self._store.url))

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        check_member(member)
        self._seen.pop(member, None)
        self._epochs.pop(member, None)
        call = ScriptCall()
        call.add(member)
        return int(await self._store.run(self._store.heartbeats, "leave", call, now, moves))

    async def list(self, *, now: Instant | None = None) -> "list[MemberRecord]":
        at, rows = await self._store.run(self._store.reads, "members", ScriptCall(), now)
        return sorted((member_of(row, at) for row in rows), key=lambda member: member.info.name)
