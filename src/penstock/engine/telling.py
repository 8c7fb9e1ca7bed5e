"""An engine that tells what it was made to change: one wrapper, no change to the engine.

Every process that changes jobs opens its engine through this. After a call has returned, and only then, what
it changed is handed to the [teller](teller.py), if anybody may be listening. Arguments, answers and errors
pass as they are; nothing that goes wrong while telling reaches the caller.

What the engine does by itself on the way is not in its answers, so it is not told: due jobs that become
ready, children that are unblocked or end with their parent, jobs that expire, and what beats, sweeps and
sign-offs give back. The next event of such a job is that of its next step.

Nor do the answers say which jobs of a firing, or of those that follow an outcome, there were already (their
ids come from the tick or from the caller): these are told as new once more.
"""

from collections.abc import Sequence
from typing import Any, cast

from penstock.engine import changes
from penstock.engine.protocol import Engine, Settled
from penstock.engine.teller import Teller
from penstock.model.ids import JobId
from penstock.model.job import CancelAnswer, Fence, NewJob, ReplayAnswer
from penstock.model.run import Answer, Claim, ClaimRequest, Fate, Loss, Release, Settlement


def telling(engine: Engine) -> Engine:
    """The same engine, whose changes are told to those who listen. On its loop."""
    return cast(Engine, TellingEngine(engine))


class TellingEngine:
    """See `telling`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.teller = teller = Teller(engine)
        self.jobs = _Jobs(engine.jobs, teller)
        self.schedules = _Schedules(engine.schedules, teller)
        self.blocking = None if engine.blocking is None else _Blocking(engine.blocking, teller)
        self.transactions = (
            None if engine.transactions is None else _Transactions(engine.transactions, teller)
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def close(self) -> None:
        await self.teller.close()
        await self._engine.close()


class _Facet:
    """A facet of which some methods are told of. Options pass as they came: an engine in between may know
    fewer of them than the contract."""

    def __init__(self, facet: Any, teller: Teller) -> None:
        self._facet = facet
        self._teller = teller

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._facet, name)
        setattr(self, name, method)  # found directly from now on
        return method


class _Jobs(_Facet):
    async def enqueue(self, jobs: Sequence[NewJob], **options: Any) -> list[bool]:
        created: list[bool] = await self._facet.enqueue(jobs, **options)
        teller = self._teller
        if teller.wanted:
            teller.tell(lambda: changes.enqueued(jobs, created, teller.clock()))
        return created

    async def claim(self, request: ClaimRequest, **options: Any) -> Claim:
        claim: Claim = await self._facet.claim(request, **options)
        teller = self._teller
        if claim.jobs and teller.wanted:
            teller.tell(lambda: teller.runs.claimed(claim.jobs, request.member))
        return claim

    async def settle(
        self, settlements: Sequence[Settlement], *, claim: ClaimRequest | None = None, **options: Any
    ) -> Settled:
        settled: Settled = await self._facet.settle(settlements, claim=claim, **options)
        teller = self._teller
        if teller.wanted:
            if settlements:
                teller.tell(lambda: teller.runs.settled(settlements, settled.answers, teller.clock()))
            next_jobs = [] if settled.claim is None else settled.claim.jobs
            if claim is not None and next_jobs:
                teller.tell(lambda: teller.runs.claimed(next_jobs, claim.member))
        return settled

    async def release(self, releases: Sequence[Release], **options: Any) -> list[Answer]:
        answers: list[Answer] = await self._facet.release(releases, **options)
        if self._teller.wanted:
            self._teller.tell(lambda: self._teller.runs.released(releases, answers))
        return answers

    async def cancel(self, ids: Sequence[JobId], **options: Any) -> list[CancelAnswer]:
        answers: list[CancelAnswer] = await self._facet.cancel(ids, **options)
        if self._teller.wanted:
            self._teller.tell(lambda: changes.cancelled(ids, answers))
        return answers

    async def replay(self, ids: Sequence[JobId], **options: Any) -> list[ReplayAnswer]:
        answers: list[ReplayAnswer] = await self._facet.replay(ids, **options)
        if self._teller.wanted:
            self._teller.tell(lambda: changes.replayed(ids, answers))
        return answers

    async def retire(self, claimant: bytes, losses: Sequence[Loss] = (), **options: Any) -> int:
        held: int = await self._facet.retire(claimant, losses, **options)
        if held and losses and self._teller.wanted:
            self._teller.tell(lambda: changes.lost(losses))
        return held


class _Blocking(_Facet):
    def enqueue(self, jobs: Sequence[NewJob], **options: Any) -> list[bool]:
        created: list[bool] = self._facet.enqueue(jobs, **options)
        teller = self._teller
        if teller.wanted:
            teller.tell(lambda: changes.enqueued(jobs, created, teller.clock()))
        return created


class _Schedules(_Facet):
    async def fire(self, name: str, *, jobs: Sequence[NewJob], **options: Any) -> bool:
        fired: bool = await self._facet.fire(name, jobs=jobs, **options)
        teller = self._teller
        if fired and jobs and teller.wanted:
            teller.tell(lambda: changes.enqueued(jobs, [True] * len(jobs), teller.clock()))
        return fired


class _Transactions(_Facet):
    async def fates(self, runs: Sequence[tuple[JobId, Fence]], **options: Any) -> list[Fate]:
        fates: list[Fate] = await self._facet.fates(runs, **options)
        if Fate.SETTLED in fates and self._teller.wanted:
            done = [job_id for (job_id, _), fate in zip(runs, fates, strict=True) if fate is Fate.SETTLED]
            self._teller.tell(lambda: self._teller.runs.completed(done))
        return fates
