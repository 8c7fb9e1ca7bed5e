"""The `members` facet."""

from collections.abc import Sequence

import msgspec

from penstock.engines.redis.call import Call
from penstock.engines.redis.store import Store
from penstock.model.errors import BadInput
from penstock.model.member import MISSED_BEATS, Ask, BeatReply, ClaimantBeat, Member, MemberInfo, health
from penstock.model.time import Instant

_encode = msgspec.json.Encoder().encode
_info = msgspec.json.Decoder(MemberInfo).decode


class RedisMembers:
    """See `penstock.engine.protocol.Members`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def beat(
        self, info: MemberInfo, claimants: Sequence[ClaimantBeat] = (), *, now: Instant | None = None
    ) -> BeatReply:
        if len(info.id) != 16 or info.beat <= 0 or info.lease <= MISSED_BEATS * info.beat:
            raise BadInput("a member has an id of 16 bytes and a lease that is longer than two beats")
        self._store.beat_within(info.lease)
        call = Call(
            name=info.name,
            beat=info.beat,
            lease=info.lease,
            claimants=[(each.answered_through, each.held) for each in claimants],
        )
        call.add(info.id, _encode(info), *(each.claimant for each in claimants))
        number, at, new, lost, asked = await self._store.run(self._store.beats, "beat", call, now)
        asks = [Ask(job_id, fence) for job_id, fence in asked]
        return BeatReply(number=number, now=at, new=new == 1, lost=lost, asked=asks)

    async def leave(self, member: bytes, *, now: Instant | None = None) -> int:
        call = Call()
        call.add(member)
        return int(await self._store.run(self._store.beats, "leave", call, now))

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        at, rows = await self._store.run(self._store.reads, "members", Call(), now)
        found = []
        for encoded, since, beat_at, steady_since, running in rows:
            info = _info(encoded)
            found.append(
                Member(
                    info=info,
                    since=since,
                    beat_at=beat_at,
                    steady_since=steady_since,
                    health=health(info, beat_at, at),
                    running=running,
                )
            )
        return sorted(found, key=lambda member: member.info.name)
