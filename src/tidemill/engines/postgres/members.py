"""The `members` facet."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.statements import load_statements
from tidemill.engines.postgres.late_commits import LateCommits
from tidemill.engines.postgres.naming import asked
from tidemill.engines.postgres.store import Store
from tidemill.model.errors import BadInput
from tidemill.model.member import MISSED_BEATS, Ask, BeatReply, ClaimantBeat, Member, MemberInfo, health
from tidemill.model.move import Moves
from tidemill.model.time import Instant

SQL = load_statements(__package__, "members")

_encode = msgspec.json.Encoder().encode
_info = msgspec.json.Decoder(MemberInfo).decode


class PostgresMembers:
    """See `tidemill.engine.protocol.Members`."""

    def __init__(self, store: Store, late_commits: LateCommits) -> None:
        self._store = store
        self._late_commits = late_commits

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
        self._late_commits.lease = min(self._late_commits.lease, info.lease)
        self._store.beat_within(info.lease)
        held = [(place, fence) for place, each in enumerate(claimants, 1) for fence in each.held]
        number, at, new, lost, ids, fences, _ = await self._store.change(
            self._store.beats, "heartbeat_v1",
            info.id, info.name, _encode(info), info.beat, info.lease,
            [each.claimant for each in claimants], [each.answered_through for each in claimants],
            [place for place, _ in held], [fence for _, fence in held], asked(now, moves), moves=moves,
        )  # fmt: skip
        asks = [Ask(*ask) for ask in zip(ids, fences, strict=True)]
        return BeatReply(number=number, now=at, new=new, lost=lost, asked=asks)

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        store = self._store
        released, _ = await store.change(store.beats, "leave_v1", member, asked(now, moves), moves=moves)
        return int(released)

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        found = []
        for encoded, since, beat_at, steady_since, running, at in await self._store.read(SQL.list, now):
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
        return found
