"""The `members` facet."""

import time
from collections.abc import Sequence

from penstock.engine.protocol import PROMOTE_LIMIT
from penstock.engines.sqlite import beats, losses, ripple
from penstock.engines.sqlite.step import Step
from penstock.engines.sqlite.store import Session
from penstock.model.errors import BadInput
from penstock.model.member import MISSED_BEATS, BeatReply, ClaimantBeat, Member, MemberInfo
from penstock.model.time import Instant


class SqliteMembers:
    """See `penstock.engine.protocol.Members`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def beat(
        self, info: MemberInfo, claimants: Sequence[ClaimantBeat] = (), *, now: Instant | None = None
    ) -> BeatReply:
        if len(info.id) != 16 or info.beat <= 0 or info.lease <= MISSED_BEATS * info.beat:
            raise BadInput("a member has an id of 16 bytes and a lease that is longer than two beats")

        def work(step: Step) -> BeatReply:
            reply = beats.beat(step, info, claimants, losses.give_back)
            ripple.tell_if_needed(step, PROMOTE_LIMIT)
            return reply

        return await self._session.write(work, now)

    async def leave(self, member: bytes, *, now: Instant | None = None) -> int:
        def work(step: Step) -> int:
            released = losses.leave(step, member)
            ripple.tell_if_needed(step, PROMOTE_LIMIT)
            return released

        return await self._session.write(work, now)

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        at = time.time_ns() // 1_000 if now is None else now
        return await self._session.read(lambda db: beats.members(at, db.execute(beats.SQL.list).fetchall()))
