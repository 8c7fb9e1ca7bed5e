"""An engine that emits events: one wrapper around the engine of every process that changes jobs.

The wrapper hands what a call changed to the [emitter](emitter.py), after the call has returned and only if
there may be a listener. Arguments, answers and errors pass unchanged. A fault while emitting never reaches
the caller.

Arguments and answer say most of what a call changed. The rest the engine moves on the way: due jobs,
children, what expired or was released. It names these in `moves`, which the wrapper requests only while
there may be a listener. Two cases leave the changes unknown, and then the wrapper emits a gap:

- The call was not answered: it may have been applied.
- A listener arrived during a call that did not request moves, and the answer shows that something may have
  changed. (A claim without jobs does not show it: what that claim moved is neither emitted nor a gap.)
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tidemill.engine.events import changes
from tidemill.engine.events.emitter import Emitter
from tidemill.engine.protocol import (
    BATCH_LIMIT,
    PROMOTE_LIMIT,
    PRUNE_LIMIT,
    BlockingFacet,
    Engine,
    Fired,
    JobsFacet,
    MembersFacet,
    Promoted,
    Pruned,
    Reclaimed,
    SchedulesFacet,
    Settled,
    TransactionsFacet,
)
from tidemill.model.errors import EngineFull, EngineUnavailable
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import (
    CancelAnswer,
    DropAnswer,
    Edit,
    Fence,
    NewJob,
    ReplayAnswer,
    RunNowAnswer,
    Stored,
)
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import Answer, Claim, ClaimRequest, Fate, LostRun, Release, Settlement
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo
from tidemill.model.queues.queue import Keep
from tidemill.model.stats.batch import StatsBatch
from tidemill.model.time import Instant

A = TypeVar("A")

UNANSWERED = (EngineUnavailable, asyncio.CancelledError)
"""Errors after which a call may have been applied. (`EngineFull` is one of them, but changed nothing.)"""


class EmittingEngine:
    """The same engine, with its changes emitted to those who listen. Made on the engine's loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.emitter = emitter = Emitter(engine)
        self.jobs = EmittingJobs(engine.jobs, emitter)
        self.members = EmittingMembers(engine.members, emitter)
        self.schedules = EmittingSchedules(engine.schedules, emitter)
        self.blocking = None if engine.blocking is None else EmittingBlocking(engine.blocking, emitter)
        self.transactions = (
            None if engine.transactions is None else EmittingTransactions(engine.transactions, emitter)
        )
        self.inspect = engine.inspect
        self.queues = engine.queues
        self.tasks = engine.tasks
        self.leases = engine.leases
        self.signals = engine.signals
        self.now = engine.now

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def single_process(self) -> bool:
        return self._engine.single_process

    @property
    def keeps(self) -> Keep:
        return self._engine.keeps

    async def close(self) -> None:
        await self.emitter.close()
        await self._engine.close()


class EmittingJobs:
    """See `tidemill.engine.protocol.JobsFacet`."""

    def __init__(self, jobs: JobsFacet, emitter: Emitter) -> None:
        self._jobs = jobs
        self._emitter = emitter
        self.write = jobs.write
        self.watch = jobs.watch

    async def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        emitter, since = self._emitter, time.monotonic()
        named = _requested(emitter, moves)
        try:
            stored = await self._jobs.enqueue(jobs, moves=named, now=now)
        except UNANSWERED as error:
            _unanswered(emitter, error)
            raise
        _enqueued(emitter, jobs, stored, named, since)
        _hand_on(named, moves)
        return stored

    async def claim(
        self, request: ClaimRequest, *, moves: Moves | None = None, now: Instant | None = None
    ) -> Claim:
        emitter = self._emitter
        named = _requested(emitter, moves)
        try:
            claim = await self._jobs.claim(request, moves=named, now=now)
        except UNANSWERED as error:
            _unanswered(emitter, error)
            raise
        if named is None:
            if claim.jobs:
                emitter.miss()
        elif named or claim.jobs:
            moved, runs = named, emitter.runs
            emitter.emit(lambda: runs.moved(moved) + runs.claimed(claim.jobs, request.member))
        _hand_on(named, moves)
        return claim

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Settled:
        emitter = self._emitter
        named = _requested(emitter, moves)
        try:
            settled = await self._jobs.settle(settlements, claim=claim, moves=named, now=now)
        except UNANSWERED as error:
            _unanswered(emitter, error)
            raise
        if named is None:
            if Answer.APPLIED in settled.answers or (settled.claim is not None and settled.claim.jobs):
                emitter.miss()
        else:
            moved, runs = named, emitter.runs
            emitter.emit(lambda: runs.settled(settlements, settled.answers) + runs.moved(moved))
            if claim is not None and settled.claim is not None and settled.claim.jobs:
                jobs, member = settled.claim.jobs, claim.member
                emitter.emit(lambda: runs.claimed(jobs, member))
        _hand_on(named, moves)
        return settled

    async def release(
        self, releases: Sequence[Release], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Answer]:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.release(releases, moves=named, now=now),
            lambda answers: Answer.APPLIED in answers,
            moves,
        )

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[CancelAnswer]:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.cancel(ids, by=by, moves=named, now=now),
            lambda answers: CancelAnswer.CANCELLED in answers,
            moves,
        )

    async def run_now(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[RunNowAnswer]:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.run_now(ids, by=by, moves=named, now=now),
            lambda answers: RunNowAnswer.READY in answers,
            moves,
        )

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
        return await _naming(
            self._emitter,
            lambda named: self._jobs.replay(ids, token=token, edit=edit, by=by, moves=named, now=now),
            lambda answers: ReplayAnswer.REPLAYED in answers,
            moves,
        )

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[DropAnswer]:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.drop(ids, by=by, moves=named, now=now),
            lambda answers: DropAnswer.DROPPED in answers,
            moves,
        )

    async def promote(
        self, *, limit: int = PROMOTE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Promoted:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.promote(limit=limit, moves=named, now=now),
            _some_jobs,
            moves,
        )

    async def retire(
        self,
        claimant: bytes,
        lost_runs: Sequence[LostRun] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> int:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.retire(claimant, lost_runs, moves=named, now=now),
            bool,
            moves,
        )

    async def reclaim(
        self,
        member: bytes,
        *,
        limit: int = BATCH_LIMIT,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Reclaimed:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.reclaim(member, limit=limit, moves=named, now=now),
            _some_jobs,
            moves,
        )

    async def prune(
        self, *, limit: int = PRUNE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Pruned:
        return await _naming(
            self._emitter,
            lambda named: self._jobs.prune(limit=limit, moves=named, now=now),
            _some_jobs,
            moves,
        )


class EmittingMembers:
    """See `tidemill.engine.protocol.MembersFacet`."""

    def __init__(self, members: MembersFacet, emitter: Emitter) -> None:
        self._members = members
        self._emitter = emitter
        self.list = members.list

    async def heartbeat(
        self,
        info: MemberInfo,
        claimants: Sequence[ClaimantHeartbeat] = (),
        *,
        statistics: StatsBatch | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> HeartbeatReply:
        # The reply does not show what was released. A heartbeat is rare enough to request moves each time.
        emitter, named = self._emitter, Moves()
        try:
            reply = await self._members.heartbeat(
                info, claimants, statistics=statistics, moves=named, now=now
            )
        except UNANSWERED as error:
            _unanswered(emitter, error)
            raise
        if named and emitter.wanted:
            emitter.emit(lambda: emitter.runs.moved(named))
        _hand_on(named, moves)
        return reply

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        return await _naming(
            self._emitter,
            lambda named: self._members.leave(member, moves=named, now=now),
            bool,
            moves,
        )


class EmittingBlocking:
    """See `tidemill.engine.protocol.BlockingFacet`."""

    def __init__(self, blocking: BlockingFacet, emitter: Emitter) -> None:
        self._blocking = blocking
        self._emitter = emitter

    def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        emitter, since = self._emitter, time.monotonic()
        named = _requested(emitter, moves)
        try:
            stored = self._blocking.enqueue(jobs, moves=named, now=now)
        except BaseException as error:
            if isinstance(error, EngineUnavailable) or not isinstance(error, Exception):
                _unanswered(emitter, error)
            raise
        _enqueued(emitter, jobs, stored, named, since)
        _hand_on(named, moves)
        return stored


class EmittingSchedules:
    """See `tidemill.engine.protocol.SchedulesFacet`."""

    def __init__(self, schedules: SchedulesFacet, emitter: Emitter) -> None:
        self._schedules = schedules
        self._emitter = emitter
        self.put = schedules.put
        self.list = schedules.list
        self.pause = schedules.pause
        self.retire = schedules.retire
        self.remove = schedules.remove

    async def fire(
        self,
        name: str,
        *,
        tick: Instant | None,
        before: Instant | None,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        last_at: Instant | None = None,
        line: Sequence[Instant] = (),
        kept: Sequence[Instant] = (),
        version: int | None = None,
        requested: bool = False,
        by: str = "",
        now: Instant | None = None,
    ) -> Fired | None:
        emitter, since = self._emitter, time.monotonic()
        try:
            fired = await self._schedules.fire(
                name,
                tick=tick,
                before=before,
                next_at=next_at,
                jobs=jobs,
                last_at=last_at,
                line=line,
                kept=kept,
                version=version,
                requested=requested,
                by=by,
                now=now,
            )
        except UNANSWERED as error:
            _unanswered(emitter, error)
            raise
        if fired is not None and jobs and emitter.wanted:
            stored = fired.stored
            emitter.emit(lambda: changes.enqueued(jobs, stored, emitter.clock()), since=since)
        return fired


class EmittingTransactions:
    """See `tidemill.engine.protocol.TransactionsFacet`."""

    def __init__(self, transactions: TransactionsFacet, emitter: Emitter) -> None:
        self._transactions = transactions
        self._emitter = emitter
        self.enqueue = transactions.enqueue
        self.complete = transactions.complete

    async def fates(self, runs: Sequence[tuple[JobId, Fence]]) -> list[Fate]:
        fates, emitter = await self._transactions.fates(runs), self._emitter
        if Fate.SETTLED in fates and emitter.wanted:
            done = [job_id for (job_id, _), fate in zip(runs, fates, strict=True) if fate is Fate.SETTLED]
            emitter.emit(lambda: emitter.runs.completed(done))
        return fates


async def _naming(
    emitter: Emitter,
    call: Callable[[Moves | None], Awaitable[A]],
    changed: Callable[[A], bool],
    moves: Moves | None,
) -> A:
    """Make a call that changes nothing but what it names. `changed`: whether its answer shows that it may
    have changed something. `moves`: what the caller requested."""
    named = _requested(emitter, moves)
    try:
        answer = await call(named)
    except UNANSWERED as error:
        _unanswered(emitter, error)
        raise
    if named is None:
        if changed(answer):
            emitter.miss()
    elif named:
        moved = named
        emitter.emit(lambda: emitter.runs.moved(moved))
    _hand_on(named, moves)
    return answer


def _enqueued(
    emitter: Emitter, jobs: Sequence[NewJob], stored: Sequence[Stored], named: Moves | None, since: float
) -> None:
    """Emit what an enqueue has stored, and what it named."""
    if not emitter.wanted:
        return
    if named is None and any(job.after for job in jobs):
        emitter.miss()
    emitter.emit(
        lambda: (
            changes.enqueued(jobs, stored, emitter.clock())
            + (emitter.runs.moved(named) if named is not None else [])
        ),
        since=since,
    )


def _requested(emitter: Emitter, moves: Moves | None) -> Moves | None:
    """Where this call shall name what it moves. Never the caller's own: it may hold other calls' moves."""
    return Moves() if emitter.wanted or moves is not None else None


def _hand_on(named: Moves | None, moves: Moves | None) -> None:
    """Give the caller the moves that it requested itself."""
    if moves is not None and named is not None:
        moves.take(named)


def _unanswered(emitter: Emitter, error: BaseException) -> None:
    if not isinstance(error, EngineFull):
        emitter.miss()


def _some_jobs(answer: Promoted | Reclaimed | Pruned) -> bool:
    return answer.jobs > 0
