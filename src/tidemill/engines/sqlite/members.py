"""The `members` facet."""

import time
from collections.abc import Sequence

from tidemill.engine.shared.checks import check_heartbeat, check_member
from tidemill.engine.shared.heartbeats import plausible
from tidemill.engine.shared.records import member_of
from tidemill.engines.sqlite import beats, losses
from tidemill.engines.sqlite.store import Session
from tidemill.model.member import BeatReply, ClaimantBeat, Member, MemberInfo
from tidemill.model.move import Moves
from tidemill.model.time import Instant


class SqliteMembers:
    """See `tidemill.engine.protocol.Members`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def beat(
        self,
        info: MemberInfo,
        claimants: Sequence[ClaimantBeat] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> BeatReply:
        check_heartbeat(info, claimants)
        known, lost = plausible(claimants)
        reply = await self._session.change(
            lambda step: beats.beat(step, info, known, losses.give_back), now, moves
        )
        reply.lost.extend(lost)
        return reply

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        check_member(member)
        return await self._session.change(lambda step: losses.leave(step, member), now, moves)

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        at = time.time_ns() // 1_000 if now is None else now
        found = await self._session.read(lambda db: db.execute(beats.SQL.list).fetchall())
        return [member_of(row, at) for row in found]
