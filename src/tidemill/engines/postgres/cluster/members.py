"""The `members` facet."""

from collections.abc import Sequence

from tidemill.engine.shared.checks import check_heartbeat, check_member
from tidemill.engine.shared.heartbeats import plausible
from tidemill.engine.shared.records import encode_member, member_of
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs.naming import now_naming
from tidemill.engines.postgres.order.late_commits import LateCommits
from tidemill.model.jobs.move import Moves
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo, MemberRecord, StopRequest
from tidemill.model.stats.batch import StatsBatch, whole_queues
from tidemill.model.time import Instant

SQL = load_statements("tidemill.engines.postgres", "members")


class PostgresMembers:
    """See `tidemill.engine.protocol.MembersFacet`."""

    def __init__(self, store: PostgresStore, late_commits: LateCommits) -> None:
        self._store = store
        self._late_commits = late_commits

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
        self._late_commits.lease = min(self._late_commits.lease, info.lease)
        self._store.heartbeat_within(info.lease)
        held = [(position, fence) for position, each in enumerate(claimants, 1) for fence in each.held]
        number, at, new, lost, ids, fences, options, _ = await self._store.change(
            self._store.heartbeats, "heartbeat_v1",
            info.id, info.name, encoded, info.heartbeat, info.lease,
            [each.claimant for each in claimants], [each.answered_through for each in claimants],
            [position for position, _ in held], [fence for _, fence in held], *_batch(statistics),
            now_naming(now, moves), moves=moves,
        )  # fmt: skip
        stops = [StopRequest(*run) for run in zip(ids, fences, strict=True)]
        return HeartbeatReply(
            number=number, now=at, new=new, lost=[*lost, *never], stop_requests=stops, options=options
        )

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        check_member(member)
        store = self._store
        released, _ = await store.change(
            store.heartbeats, "leave_v1", member, now_naming(now, moves), moves=moves
        )
        return int(released)

    async def list(self, *, now: Instant | None = None) -> "list[MemberRecord]":
        return [member_of(row[:-1], row[-1]) for row in await self._store.read(SQL.list, now)]


def _batch(statistics: StatsBatch | None) -> tuple[object, ...]:
    """The parameters of `heartbeat_v1` for a batch. The whole queues are its first rows."""
    if statistics is None:
        return None, [], [], [], []
    queues = whole_queues(statistics.rows)
    rows = [*queues, *statistics.rows]
    return (
        statistics.number,
        [0] * len(queues) + [1] * len(statistics.rows),
        [row.queue for row in rows],
        [row.task for row in rows],
        [f"{{{','.join(map(str, row.packed))}}}" for row in rows],
    )
