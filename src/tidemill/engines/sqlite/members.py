"""The `members` facet."""

import time
from collections.abc import Sequence

from tidemill.engines.sqlite import beats, losses
from tidemill.engines.sqlite.store import Session
from tidemill.model.errors import BadInput
from tidemill.model.member import MISSED_BEATS, BeatReply, ClaimantBeat, Member, MemberInfo
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
        if len(info.id) != 16 or info.beat <= 0 or info.lease <= MISSED_BEATS * info.beat:
            raise BadInput("a member has an id of 16 bytes and a lease that is longer than two beats")

        return await self._session.change(
            lambda step: beats.beat(step, info, claimants, losses.give_back), now, moves
        )

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        return await self._session.change(lambda step: losses.leave(step, member), now, moves)

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        at = time.time_ns() // 1_000 if now is None else now
        return await self._session.read(lambda db: beats.members(at, db.execute(beats.SQL.list).fetchall()))
