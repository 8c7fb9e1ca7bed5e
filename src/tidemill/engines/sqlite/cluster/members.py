"""The `members` facet."""

import time
from collections.abc import Sequence

from tidemill.engine.shared.checks import check_heartbeat, check_member
from tidemill.engine.shared.heartbeats import plausible
from tidemill.engine.shared.records import member_of
from tidemill.engines.sqlite.cluster import heartbeat
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs import lost_runs
from tidemill.model.jobs.move import Moves
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo, MemberRecord
from tidemill.model.stats.batch import StatsBatch
from tidemill.model.time import Instant


class SqliteMembers:
    """See `tidemill.engine.protocol.MembersFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

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
        known, lost = plausible(claimants)
        reply = await self._session.change(
            lambda step: heartbeat.heartbeat(step, info, known, statistics, lost_runs.release), now, moves
        )
        reply.lost.extend(lost)
        return reply

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        check_member(member)
        return await self._session.change(lambda step: lost_runs.leave(step, member), now, moves)

    async def list(self, *, now: Instant | None = None) -> "list[MemberRecord]":
        at = time.time_ns() // 1_000 if now is None else now
        found = await self._session.read(lambda db: db.execute(heartbeat.SQL.list).fetchall())
        return [member_of(row, at) for row in found]
