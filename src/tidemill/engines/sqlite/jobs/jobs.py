"""The `jobs` facet: checks at the edge, then one operation of the writer each."""

from collections.abc import Sequence

from tidemill.engine.protocol import (
    BATCH_LIMIT,
    PROMOTE_LIMIT,
    PRUNE_LIMIT,
    Promoted,
    Pruned,
    Reclaimed,
    Settled,
)
from tidemill.engine.shared.checks import (
    check_batch,
    check_claim,
    check_ids,
    check_jobs,
    check_lost_runs,
    check_member,
    check_notes,
    check_releases,
    check_replay,
    check_settlements,
    check_text,
    check_watch,
)
from tidemill.engine.shared.heartbeats import plausible_lost_runs
from tidemill.engine.shared.turns import ClaimTurns
from tidemill.engine.shared.uniques import may_move
from tidemill.engines.sqlite.claiming import claim as claiming
from tidemill.engines.sqlite.claiming.runs import ClaimedRuns
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs import commands, enqueue, plain_settle, promote, prune, settle
from tidemill.engines.sqlite.jobs import lost_runs as losing
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.order import positions
from tidemill.engines.sqlite.read import rows
from tidemill.model.errors import Refused
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import (
    LIVE,
    CancelAnswer,
    DropAnswer,
    Edit,
    JobRecord,
    NewJob,
    ReplayAnswer,
    RunNowAnswer,
    Stored,
)
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import Answer, Claim, ClaimRequest, LostRun, Note, Release, Settlement
from tidemill.model.time import Instant, Span


class SqliteJobs:
    """See `tidemill.engine.protocol.JobsFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
        self._turns = ClaimTurns[int]()
        self._runs = ClaimedRuns()

    async def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        check_jobs(jobs)
        if moves is not None and any(may_move(job) for job in jobs):
            return await self._session.change(lambda step: enqueue.enqueue(step, jobs), now, moves)
        return await self._session.merge(enqueue.enqueue_calls, jobs, size=enqueue.size_of(jobs), now=now)

    async def claim(
        self, request: ClaimRequest, *, moves: Moves | None = None, now: Instant | None = None
    ) -> Claim:
        check_claim(request)
        taken: dict[JobId, int] = {}
        claim = await self._session.change(
            lambda step: claiming.claim(step, request, self._turns, taken), now, moves
        )
        self._runs.add(taken)
        return claim

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Settled:
        check_batch(len(settlements))
        done = plain_settle.plain(settlements, self._runs)
        if done is None:
            check_settlements(settlements)
        if claim is not None:
            check_claim(claim)
        taken: dict[JobId, int] = {}

        def work(step: Step) -> Settled:
            if done is not None and plain_settle.complete(step, done):
                settled = Settled([Answer.APPLIED] * len(done))
            else:
                settled = Settled(settle.settle(step, settlements))
            if claim is not None:
                try:
                    settled.claim = claiming.claim(step, claim, self._turns, taken)
                except Refused as refused:  # raised before the claim wrote anything
                    settled.refused = refused
            return settled

        answer = await self._session.change(work, now, moves)
        self._runs.add(taken)
        return answer

    async def write(self, notes: Sequence[Note], *, now: Instant | None = None) -> list[Answer]:
        check_notes(notes)
        return await self._session.change(lambda step: commands.write(step, notes), now)

    async def release(
        self, releases: Sequence[Release], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Answer]:
        check_releases(releases)
        return await self._session.change(lambda step: settle.release(step, releases), now, moves)

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[CancelAnswer]:
        check_ids(ids)
        check_text(by, "by")
        return await self._session.change(lambda step: commands.cancel(step, ids, by), now, moves)

    async def run_now(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[RunNowAnswer]:
        check_ids(ids)
        check_text(by, "by")
        return await self._session.change(lambda step: commands.run_now(step, ids, by), now, moves)

    async def replay(
        self,
        ids: Sequence[JobId],
        *,
        token: bytes,
        edit: Edit | None = None,
        by: str = "",
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> list[ReplayAnswer]:
        check_replay(ids, token, edit)
        check_text(by, "by")
        return await self._session.change(
            lambda step: commands.replay(step, ids, token, edit, by), now, moves
        )

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[DropAnswer]:
        check_ids(ids)
        check_text(by, "by")
        return await self._session.change(lambda step: commands.drop(step, ids, by), now, moves)

    async def watch(
        self, ids: Sequence[JobId], *, waiter: str, ttl: Span, now: Instant | None = None
    ) -> list[JobRecord | None]:
        check_watch(ids, waiter, ttl)
        return await self._session.change(
            lambda step: [_watch(step, job_id, waiter, ttl) for job_id in ids], now
        )

    async def promote(
        self, *, limit: int = PROMOTE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Promoted:
        check_batch(limit, PROMOTE_LIMIT)
        return await self._session.change(lambda step: promote.promote(step, limit), now, moves)

    async def retire(
        self,
        claimant: bytes,
        lost_runs: Sequence[LostRun] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> int:
        check_lost_runs(claimant, lost_runs)
        known = plausible_lost_runs(lost_runs)
        return await self._session.change(lambda step: losing.retire(step, claimant, known), now, moves)

    async def reclaim(
        self,
        member: bytes,
        *,
        limit: int = BATCH_LIMIT,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Reclaimed:
        check_member(member)
        check_batch(limit)
        return await self._session.change(lambda step: losing.reclaim(step, member, limit), now, moves)

    async def prune(
        self, *, limit: int = PRUNE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Pruned:
        check_batch(limit, PRUNE_LIMIT)
        return await self._session.change(lambda step: prune.prune(step, limit), now, moves)


class SqliteBlocking:
    """See `tidemill.engine.protocol.BlockingFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        check_jobs(jobs)
        return self._session.merge_here(enqueue.enqueue_calls, jobs, size=enqueue.size_of(jobs), now=now)


def _watch(step: Step, job_id: JobId, waiter: str, ttl: Span) -> JobRecord | None:
    row = rows.find(step.db, job_id)
    if row is None:
        return None
    if row[rows.FORM] == positions.TOMBSTONE:
        return rows.tombstone_of(row)
    job = rows.job_of(row)
    if job.state in LIVE:
        step.db.execute(commands.SQL.add_watch, (row[0], waiter, step.now + ttl))
        step.catalogue.watched = True
    return job
