"""The `jobs` facet: checks at the edge, then one function of ours each."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec

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
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.jobs import claim as claiming
from tidemill.engines.postgres.jobs import enqueue as enqueuing
from tidemill.engines.postgres.jobs import settle as settling
from tidemill.engines.postgres.jobs.claim import ClaimMemory
from tidemill.engines.postgres.jobs.naming import now_naming, take_named
from tidemill.engines.postgres.order.late_commits import LateCommits
from tidemill.engines.postgres.read.rows import FORM, TOMBSTONE, job_of, tombstone_of
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
from tidemill.model.time import MILLISECOND, Instant, Span

PRUNE_BUDGET: Span = 20 * MILLISECOND
"""How long a prune goes on: it holds what it deletes."""
PRUNE_ANEW_S = 60.0
"""How often retention begins at the oldest end again and checks large counts, which it has to walk."""

_head: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class PostgresJobs:
    """See `tidemill.engine.protocol.JobsFacet`."""

    def __init__(self, store: PostgresStore, claims: ClaimMemory, late_commits: LateCommits) -> None:
        self._store = store
        self._claims = claims
        self._late_commits = late_commits
        self._prune_anew_at = 0.0
        self._prune_marks = "{}"

    async def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        check_jobs(jobs)
        return await enqueuing.enqueue(self._store, jobs, moves, now)

    async def claim(
        self, request: ClaimRequest, *, moves: Moves | None = None, now: Instant | None = None
    ) -> Claim:
        check_claim(request)
        self._late_commits.begin()
        store, generation = self._store, self._claims.cursors.generation
        head, *rows = await store.rows(
            store.claims, "claim_plain_v1", *self._claims.parameters(request), now_naming(now, moves)
        )
        return self._answer(request, head, rows, generation, moves)

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Settled:
        check_settlements(settlements)
        store, call = self._store, settling.Settling(settlements)
        request: tuple[object, ...] = claiming.NO_CLAIM
        connection, generation = store.settles, self._claims.cursors.generation
        if claim is not None:
            check_claim(claim)
            self._late_commits.begin()
            request, connection = self._claims.parameters(claim), store.claims
        first, *rows = await store.rows(
            connection, "settle_v1", *call.parameters(), now_naming(now, moves), *request
        )
        head = _head.decode(first[0])
        store.pubsub.send(take_named(head["signals"], moves))
        settled = Settled(call.answers(head["answers"]))
        if claim is not None:
            try:
                settled.claim = self._answer(claim, rows[0], rows[1:], generation, moves)
            except Refused as refused:
                settled.refused = refused
        return settled

    def _answer(
        self,
        request: ClaimRequest,
        first: Row,
        rows: Sequence[Row],
        generation: int,
        moves: Moves | None = None,
    ) -> Claim:
        head = _head.decode(first[0])
        self._store.pubsub.send(take_named(head.get("signals", ()), moves))
        return self._claims.answer(request, head, rows, generation)

    async def write(self, notes: Sequence[Note], *, now: Instant | None = None) -> list[Answer]:
        check_notes(notes)
        parameters = settling.note_parameters(notes)
        (applied,) = await self._store.call(self._store.settles, "write_v1", *parameters, now)
        return [note_answer(each) for each in applied]

    async def release(
        self, releases: Sequence[Release], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Answer]:
        check_releases(releases)
        parameters = settling.release_parameters(releases)
        answers, _ = await self._store.change(
            self._store.settles, "release_v1", *parameters, now_naming(now, moves), moves=moves
        )
        return [ANSWERS[code] for code in answers]

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[CancelAnswer]:
        check_text(by, "by")
        answers, _ = await self._command("cancel_v1", check_ids(ids), by, now_naming(now, moves), moves=moves)
        return [CANCEL_ANSWERS[code] for code in answers]

    async def run_now(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[RunNowAnswer]:
        check_text(by, "by")
        named = now_naming(now, moves)
        answers, _ = await self._command("run_now_v1", check_ids(ids), by, named, moves=moves)
        return [RUN_NOW_ANSWERS[code] for code in answers]

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
        wanted = check_replay(ids, token, edit)
        edited = (None, None, None) if edit is None else (edit.body, edit.codec, edit.key or "")
        check_text(by, "by")
        answers, _ = await self._command(
            "replay_v1", wanted, token, *edited, by, now_naming(now, moves), moves=moves
        )
        return [REPLAY_ANSWERS[code] for code in answers]

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[DropAnswer]:
        check_text(by, "by")
        answers, _ = await self._command("drop_v1", check_ids(ids), by, now_naming(now, moves), moves=moves)
        return [DROP_ANSWERS[code] for code in answers]

    async def watch(
        self, ids: Sequence[JobId], *, waiter: str, ttl: Span, now: Instant | None = None
    ) -> list[JobRecord | None]:
        store = self._store
        rows = await store.rows(store.commands, "watch_v1", check_watch(ids, waiter, ttl), waiter, ttl, now)
        found = {row[0]: tombstone_of(row) if row[FORM] == TOMBSTONE else job_of(row) for row in rows}
        return [found.get(job_id) for job_id in ids]

    async def promote(
        self, *, limit: int = PROMOTE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Promoted:
        check_batch(limit, PROMOTE_LIMIT)
        moved, ahead, _ = await self._command("promote_v1", limit, now_naming(now, moves), moves=moves)
        return Promoted(moved, ahead)

    async def retire(
        self,
        claimant: bytes,
        lost_runs: Sequence[LostRun] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> int:
        check_lost_runs(claimant, lost_runs)
        parameters = settling.lost_run_parameters(plausible_lost_runs(lost_runs))
        held, _ = await self._store.change(
            self._store.heartbeats, "retire_v1", claimant, *parameters, now_naming(now, moves), moves=moves
        )
        return int(held)

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
        row = await self._store.change(
            self._store.heartbeats, "reclaim_v1", member, limit, now_naming(now, moves), moves=moves
        )
        return Reclaimed(entitled=row[0], jobs=row[1], gone=row[2])

    async def prune(
        self, *, limit: int = PRUNE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Pruned:
        check_batch(limit, PRUNE_LIMIT)
        anew = time.monotonic() >= self._prune_anew_at
        row = await self._command(
            "prune_v1", limit, PRUNE_BUDGET, anew, self._prune_marks, now_naming(now, moves), moves=moves
        )
        if anew:
            self._prune_anew_at = time.monotonic() + PRUNE_ANEW_S
        self._prune_marks = row[2]
        return Pruned(row[0], row[1])

    async def _command(self, function: str, *parameters: object, moves: Moves | None) -> Row:
        return await self._store.change(self._store.commands, function, *parameters, moves=moves)
