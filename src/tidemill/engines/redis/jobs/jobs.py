"""The `jobs` facet: checks at the edge, then one script each."""

from collections.abc import Sequence
from typing import Any

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
from tidemill.engine.shared.codes import (
    ANSWERS,
    CANCEL_ANSWERS,
    DROP_ANSWERS,
    REPLAY_ANSWERS,
    RUN_NOW_ANSWERS,
    note_answer,
)
from tidemill.engine.shared.heartbeats import plausible_lost_runs
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.jobs import claim as claiming
from tidemill.engines.redis.jobs import enqueue as enqueuing
from tidemill.engines.redis.jobs import settle as settling
from tidemill.engines.redis.read.rows import TOMBSTONE, job_of, tombstone_of
from tidemill.model.errors import Refused
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import (
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
from tidemill.model.queues.queue import TOMBSTONE_AGE
from tidemill.model.time import DAY, Instant, Span

MINUTES_AGE = 32 * DAY
CLAIMANTS = 64
"""So many are remembered; a process has one."""


class RedisJobs:
    """See `tidemill.engine.protocol.JobsFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._brought: dict[bytes, int] = {}
        """By claimant, the number of the last claim that brought jobs: the server must know it too."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        check_jobs(jobs)
        return await enqueuing.enqueue(self._store, jobs, moves, now)

    async def claim(
        self, request: ClaimRequest, *, moves: Moves | None = None, now: Instant | None = None
    ) -> Claim:
        check_claim(request)
        call = ScriptCall()
        claiming.add_claim(call, request, self._brought.get(request.claimant, 0))
        answer = await self._store.run(self._store.claims, "claim", call, now, moves)
        return self._claimed(request, answer)

    def _claimed(self, request: ClaimRequest, answer: Any) -> Claim:
        claim = claiming.claim_of(request, answer)
        if claim.jobs:
            self._store.saw(job.fence for job in claim.jobs)
            if request.claimant not in self._brought and len(self._brought) >= CLAIMANTS:
                self._brought.clear()
            self._brought[request.claimant] = request.number
        return claim

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Settled:
        check_settlements(settlements)
        call, connection = settling.SettleCall(settlements), self._store.settles
        if claim is not None:
            check_claim(claim)
            claiming.add_claim(call, claim, self._brought.get(claim.claimant, 0))
            connection = self._store.claims
        answers, claimed = await self._store.run(connection, "settle", call, now, moves)
        settled = Settled(call.in_order(answers))
        if claim is not None:
            try:
                settled.claim = self._claimed(claim, claimed)
            except Refused as refused:
                settled.refused = refused
        return settled

    async def write(self, notes: Sequence[Note], *, now: Instant | None = None) -> list[Answer]:
        check_notes(notes)
        applied = await self._store.run(self._store.settles, "write", settling.write_call(notes), now)
        return [note_answer(each) for each in applied]

    async def release(
        self, releases: Sequence[Release], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Answer]:
        check_releases(releases)
        call = settling.release_call(releases)
        codes = await self._store.run(self._store.settles, "release", call, now, moves)
        return [ANSWERS[code] for code in codes]

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[CancelAnswer]:
        check_text(by, "by")
        codes = await self._command("cancel", _about(ids, by=by), now, moves)
        return [CANCEL_ANSWERS[code] for code in codes]

    async def run_now(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[RunNowAnswer]:
        check_text(by, "by")
        codes = await self._command("run_now", _about(ids, by=by), now, moves)
        return [RUN_NOW_ANSWERS[code] for code in codes]

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
        check_text(by, "by")
        call = _about(check_replay(ids, token, edit), by=by)
        call.blobs.insert(0, token)
        if edit is not None:
            call.values["edit"] = (edit.codec, edit.key or "")
            call.add(edit.body)
        return [REPLAY_ANSWERS[code] for code in await self._command("replay", call, now, moves)]

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[DropAnswer]:
        check_text(by, "by")
        return [DROP_ANSWERS[code] for code in await self._command("drop", _about(ids, by=by), now, moves)]

    async def watch(
        self, ids: Sequence[JobId], *, waiter: str, ttl: Span, now: Instant | None = None
    ) -> list[JobRecord | None]:
        check_watch(ids, waiter, ttl)
        rows = await self._command("watch", _about(ids, waiter=waiter, ttl=ttl), now)
        return [None if row is None else (tombstone_of if row[TOMBSTONE] else job_of)(row) for row in rows]

    async def promote(
        self, *, limit: int = PROMOTE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Promoted:
        check_batch(limit, PROMOTE_LIMIT)
        moved, wait = await self._command("promote", ScriptCall(limit=limit), now, moves)
        return Promoted(moved, None if wait < 0 else wait)

    async def retire(
        self,
        claimant: bytes,
        lost_runs: Sequence[LostRun] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> int:
        check_lost_runs(claimant, lost_runs)
        call = settling.retire_call(claimant, plausible_lost_runs(lost_runs))
        return int(await self._store.run(self._store.heartbeats, "retire", call, now, moves))

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
        call = ScriptCall(limit=limit)
        call.add(member)
        entitled, jobs, gone = await self._store.run(self._store.heartbeats, "reclaim", call, now, moves)
        return Reclaimed(entitled=entitled == 1, jobs=jobs, gone=[name.decode() for name in gone])

    async def prune(
        self, *, limit: int = PRUNE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Pruned:
        check_batch(limit, PRUNE_LIMIT)
        call = ScriptCall(limit=min(limit, BATCH_LIMIT), tombstone_age=TOMBSTONE_AGE, minutes_age=MINUTES_AGE)
        pruned, more = await self._command("prune", call, now, moves)
        return Pruned(pruned, more == 1)

    async def _command(
        self, name: str, call: ScriptCall, now: Instant | None, moves: Moves | None = None
    ) -> Any:
        return await self._store.run(self._store.commands, name, call, now, moves)


def _about(ids: Sequence[JobId], **values: Any) -> ScriptCall:
    call = ScriptCall(count=len(ids), **values)
    call.add(*check_ids(ids))
    return call
