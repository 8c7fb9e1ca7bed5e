"""A worker's hand, moved by the test: claims and settles through the engine."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tidemill import Job, Tidemill, UnknownJob
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.jobs import job as model
from tidemill.model.jobs.run import ClaimedJob, ClaimRequest, Completed, Outcome, Settlement, Want
from tidemill.model.member import MemberInfo

T = TypeVar("T")


class Hand:
    """One member with one claimant."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._member = MemberInfo(id=new_id(), name="hand")
        self._claimant = new_id()
        self._number = 0

    async def take(self, *queues: str, most: int = 100) -> list[ClaimedJob]:
        await self.engine.members.heartbeat(self._member)
        self._number += 1
        request = ClaimRequest(
            member=self._member.id, claimant=self._claimant, number=self._number,
            wants=tuple(Want(queue) for queue in queues or ("default",)), most=most,
        )  # fmt: skip
        return (await self.engine.jobs.claim(request)).jobs

    async def settle(self, job: ClaimedJob, outcome: Outcome | None = None) -> None:
        await self.engine.jobs.settle(
            [Settlement(id=job.id, fence=job.fence, outcome=outcome or Completed(result=b'"done"'))]
        )


async def with_hand(app: Tidemill, work: Callable[[Hand], Awaitable[T]]) -> T:
    """Do something with the app's own engine."""
    engine = await connect(app.url, namespace=app.namespace)
    try:
        return await work(Hand(engine))
    finally:
        await engine.close()


async def taken(app: Tidemill, *queues: str, most: int = 1_000) -> list[ClaimedJob]:
    """Everything that is ready, in order."""

    async def take(hand: Hand) -> list[ClaimedJob]:
        return await hand.take(*queues, most=most)

    return await with_hand(app, take)


def bodies(jobs: list[Any]) -> list[bytes]:
    return [job.body for job in jobs]


def record_of(job: Job[Any]) -> model.JobRecord:
    """What the engine has of a job, as it has it."""
    found = job._link.wait("info", job._get)
    if found is None:
        raise UnknownJob(job.id)
    return found
