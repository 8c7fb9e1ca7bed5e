"""A member that claims and settles through the facets, in both shapes, as fast as it can."""

import asyncio
import os

from bench.load import QUEUE, RESULT
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import Answer, Claim, ClaimedJob, ClaimRequest, Completed, Settlement, Want
from tidemill.model.member import MemberInfo
from tidemill.model.time import HOUR


class Claimer:
    """One member with one claimant, on one queue or several."""

    def __init__(self, engine: Engine, *queues: str) -> None:
        self._engine = engine
        self._wants = tuple(map(Want, queues or (QUEUE,)))
        self._member = new_id()
        self._claimant = new_id()
        self._number = 0

    @classmethod
    async def join(cls, engine: Engine, *queues: str) -> "Claimer":
        """A claimer whose member has sent a heartbeat: only then may it claim."""
        claimer = cls(engine, *queues)
        info = MemberInfo(id=claimer._member, name=f"bench:{os.getpid()}", pid=os.getpid(), lease=HOUR)
        await engine.members.heartbeat(info)
        return claimer

    async def take(self, most: int) -> list[ClaimedJob]:
        """Claim, and keep what comes."""
        return (await self._engine.jobs.claim(self._request(most))).jobs

    async def drain(self, batch: int) -> int:
        """Settle the last batch and claim the next in one trip, until nothing is left."""
        settled = 0
        held = await self.take(batch)
        while held:
            answer = await self._engine.jobs.settle(_done(held), claim=self._request(batch))
            settled += _applied(answer.answers, held)
            held = _granted(answer.claim)
        return settled

    async def drain_apart(self, batch: int) -> int:
        """Claim and settle in trips of their own, until nothing is left."""
        settled = 0
        while held := await self.take(batch):
            settled += _applied((await self._engine.jobs.settle(_done(held))).answers, held)
        return settled

    async def drain_overlapping(self, batch: int) -> int:
        """Claim the next batch while the last one is settled, until nothing is left."""
        settled = 0
        held = await self.take(batch)
        while held:
            settling = asyncio.ensure_future(self._engine.jobs.settle(_done(held)))
            last, held = held, await self.take(batch)
            settled += _applied((await settling).answers, last)
        return settled

    def _request(self, most: int) -> ClaimRequest:
        self._number += 1
        return ClaimRequest(
            member=self._member, claimant=self._claimant, number=self._number, wants=self._wants, most=most
        )


_COMPLETED = Completed(result=RESULT)


def _done(held: list[ClaimedJob]) -> list[Settlement]:
    return [Settlement(id=job.id, fence=job.fence, outcome=_COMPLETED, ran=10) for job in held]


def _applied(answers: list[Answer], held: list[ClaimedJob]) -> int:
    count = answers.count(Answer.APPLIED)
    if count != len(held):
        raise RuntimeError(f"only {count} of {len(held)} settlements applied")
    return count


def _granted(claim: Claim | None) -> list[ClaimedJob]:
    if claim is None:
        raise RuntimeError("the engine refused the next claim")
    return claim.jobs
