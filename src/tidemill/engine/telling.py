"""An engine that tells what it was made to change: one wrapper around the engine.

Every process that changes jobs opens its engine through this. After a call has returned, and only then, what
it changed is handed to the [teller](teller.py), if anybody may be listening. Arguments, answers and errors
pass as they are; nothing that goes wrong while telling reaches the caller.

What a call changed stands in its arguments and its answer; what the engine moved on the way (due jobs,
children, what expired or was given back) it names in `moves`, which is given to it only while somebody may be
listening. Where no answer came, nobody knows what was changed: a gap. So it is where somebody began to listen
while a call was under way that was not asked for names, and its answer shows that something may have changed.
(That of a claim without jobs does not: what it moved on its way is then neither told nor a gap.)
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from tidemill.engine import changes
from tidemill.engine.protocol import Engine, Fired, Promoted, Pruned, Reclaimed, Settled
from tidemill.engine.teller import Teller
from tidemill.model.errors import EngineFull, EngineUnavailable
from tidemill.model.ids import JobId
from tidemill.model.job import CancelAnswer, DropAnswer, Fence, NewJob, ReplayAnswer
from tidemill.model.move import Moves
from tidemill.model.run import Answer, Claim, ClaimRequest, Fate, Settlement

UNANSWERED = (EngineUnavailable, asyncio.CancelledError)
"""What a call raises that may have been made all the same; but for `EngineFull`, which changed nothing."""


def telling(engine: Engine) -> Engine:
    """The same engine, whose changes are told to those who listen. On its loop."""
    return cast(Engine, TellingEngine(engine))


class TellingEngine:
    """See `telling`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.teller = teller = Teller(engine)
        self.jobs = _Jobs(engine.jobs, teller)
        self.members = _Members(engine.members, teller)
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
    """A facet of which some methods are told of. Options pass as they came."""

    def __init__(self, facet: Any, teller: Teller) -> None:
        self._facet = facet
        self._teller = teller

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._facet, name)
        setattr(self, name, method)  # found directly from now on
        return method

    async def _named(
        self, method: Callable[..., Any], changed: Callable[[Any], bool], *arguments: Any, **options: Any
    ) -> Any:
        """A call that changes nothing but what it names; `changed`: whether its answer shows that it may
        have changed something."""
        teller, moves = self._teller, None
        if teller.wanted:
            options["moves"] = moves = Moves()
        try:
            answer = await method(*arguments, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if moves is None:
            if changed(answer):
                teller.miss()
        elif moves:
            named = moves
            teller.tell(lambda: teller.runs.moved(named))
        return answer


class _Jobs(_Facet):
    async def enqueue(self, jobs: Sequence[NewJob], **options: Any) -> list[bool]:
        teller, since = self._teller, time.monotonic()
        try:
            created: list[bool] = await self._facet.enqueue(jobs, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if teller.wanted:
            teller.tell(lambda: changes.enqueued(jobs, created, teller.clock()), since=since)
        return created

    async def claim(self, request: ClaimRequest, **options: Any) -> Claim:
        teller, moves = self._teller, None
        if teller.wanted:
            options["moves"] = moves = Moves()
        try:
            claim: Claim = await self._facet.claim(request, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if moves is None:
            if claim.jobs:
                teller.miss()
        elif moves or claim.jobs:
            named, runs = moves, teller.runs
            teller.tell(lambda: runs.moved(named) + runs.claimed(claim.jobs, request.member))
        return claim

    async def settle(
        self, settlements: Sequence[Settlement], *, claim: ClaimRequest | None = None, **options: Any
    ) -> Settled:
        teller, moves = self._teller, None
        if teller.wanted:
            options["moves"] = moves = Moves()
        try:
            settled: Settled = await self._facet.settle(settlements, claim=claim, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if moves is None:
            if Answer.APPLIED in settled.answers or (settled.claim is not None and settled.claim.jobs):
                teller.miss()
        else:
            named, runs = moves, teller.runs
            teller.tell(lambda: runs.settled(settlements, settled.answers) + runs.moved(named))
            if claim is not None and settled.claim is not None and settled.claim.jobs:
                jobs, member = settled.claim.jobs, claim.member
                teller.tell(lambda: runs.claimed(jobs, member))
        return settled

    async def release(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.release, _any_is(Answer.APPLIED), *arguments, **options)

    async def cancel(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.cancel, _any_is(CancelAnswer.CANCELLED), *arguments, **options)

    async def replay(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.replay, _any_is(ReplayAnswer.REPLAYED), *arguments, **options)

    async def drop(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.drop, _any_is(DropAnswer.DROPPED), *arguments, **options)

    async def promote(self, **options: Any) -> Any:
        return await self._named(self._facet.promote, _some_jobs, **options)

    async def retire(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.retire, bool, *arguments, **options)

    async def reclaim(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.reclaim, _some_jobs, *arguments, **options)

    async def prune(self, **options: Any) -> Any:
        return await self._named(self._facet.prune, _some_jobs, **options)


class _Members(_Facet):
    async def beat(self, *arguments: Any, **options: Any) -> Any:
        # Its answer does not show what it gave back. It is rare enough to be asked for names each time.
        teller, moves = self._teller, Moves()
        try:
            reply = await self._facet.beat(*arguments, moves=moves, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if moves and teller.wanted:
            teller.tell(lambda: teller.runs.moved(moves))
        return reply

    async def leave(self, *arguments: Any, **options: Any) -> Any:
        return await self._named(self._facet.leave, bool, *arguments, **options)


class _Blocking(_Facet):
    def enqueue(self, jobs: Sequence[NewJob], **options: Any) -> list[bool]:
        teller, since = self._teller, time.monotonic()
        try:
            created: list[bool] = self._facet.enqueue(jobs, **options)
        except BaseException as error:
            if isinstance(error, EngineUnavailable) or not isinstance(error, Exception):
                _unanswered(teller, error)
            raise
        if teller.wanted:
            teller.tell(lambda: changes.enqueued(jobs, created, teller.clock()), since=since)
        return created


class _Schedules(_Facet):
    async def fire(self, name: str, *, jobs: Sequence[NewJob], **options: Any) -> Fired | None:
        teller, since = self._teller, time.monotonic()
        try:
            fired: Fired | None = await self._facet.fire(name, jobs=jobs, **options)
        except UNANSWERED as error:
            _unanswered(teller, error)
            raise
        if fired is not None and jobs and teller.wanted:
            created = fired.created
            teller.tell(lambda: changes.enqueued(jobs, created, teller.clock()), since=since)
        return fired


class _Transactions(_Facet):
    async def fates(self, runs: Sequence[tuple[JobId, Fence]], **options: Any) -> list[Fate]:
        fates: list[Fate] = await self._facet.fates(runs, **options)
        if Fate.SETTLED in fates and self._teller.wanted:
            done = [job_id for (job_id, _), fate in zip(runs, fates, strict=True) if fate is Fate.SETTLED]
            self._teller.tell(lambda: self._teller.runs.completed(done))
        return fates


def _unanswered(teller: Teller, error: BaseException) -> None:
    if not isinstance(error, EngineFull):
        teller.miss()


def _any_is(applied: str) -> Callable[[Sequence[str]], bool]:
    return lambda answers: applied in answers


def _some_jobs(answer: Promoted | Reclaimed | Pruned) -> bool:
    return answer.jobs > 0
