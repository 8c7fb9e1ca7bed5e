"""Suspects: one at a time in a member, however much is claimed ahead."""

import asyncio
from collections.abc import Callable

from tests.integration.worker.workplace import QUEUE, Workplace
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import ClaimedJob, ClaimRequest, LostRun, Want
from tidemill.model.member import MemberInfo
from tidemill.task.current import Abort, ControlledJob
from tidemill.worker.runner.pool import ProcessOutcome, Returned


class Processes:
    """Stands in for processes: counts the suspects that run at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    async def run(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        *,
        fresh: bool,
        began: Callable[[], None],
        between: tuple[int, int],
    ) -> ProcessOutcome:
        began()
        self.inside += job.suspect
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0)
        self.inside -= job.suspect
        return Returned(None)

    def stop(self, fence: int, reason: Abort, *, kill: bool) -> None: ...

    async def close(self) -> None: ...


async def suspects(workplace: Workplace, count: int) -> list[JobId]:
    """Jobs that were running together when a claimant died."""
    ids = await workplace.enqueue_many("works", times=count)
    jobs, other, claimant = workplace.engine.jobs, MemberInfo(id=new_id(), name="other"), new_id()
    await workplace.engine.members.heartbeat(other)
    request = ClaimRequest(member=other.id, claimant=claimant, number=1, wants=(Want(QUEUE),), most=count)
    claim = await jobs.claim(request)
    await jobs.retire(
        claimant, [LostRun(id=job.id, fence=job.fence, verdict="suspect") for job in claim.jobs]
    )
    return ids


async def test_none_is_claimed_ahead_of_its_slot(workplace: Workplace) -> None:
    """Waiting in the buffer it would not be seen by the next claim, which would ask for another."""
    full, end = asyncio.Event(), asyncio.Event()
    running = 0

    async def holds() -> None:
        nonlocal running
        running += 1
        if running == 4:
            full.set()
        await end.wait()

    async def works() -> None: ...

    workplace.task(holds)
    workplace.task(works)
    ids = await suspects(workplace, 6)
    await workplace.enqueue_many("holds", times=4, priority=0)
    processes = Processes()
    worker = await workplace.start(processes=processes, takes_suspects=True, slots=4)
    await full.wait()
    workplace.claim_ahead(4)
    plain = await workplace.enqueue_many("works", times=4)  # these may wait
    await worker.moments.reached("claimed", 8)
    assert await workplace.states(ids) == [JobState.READY] * 6
    end.set()
    await workplace.settled(14)
    assert await workplace.states([*ids, *plain]) == [JobState.COMPLETED] * 10
    assert processes.most == 1
    assert worker.moments.count("released") == 0


async def test_one_that_comes_with_others_takes_a_slot_and_they_wait(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    first = await workplace.enqueue_many("works", times=6)
    ids = await suspects(workplace, 2)
    processes = Processes()
    worker = await workplace.start(processes=processes, takes_suspects=True, slots=2)
    workplace.claim_ahead(20)
    await workplace.settled(8)
    assert await workplace.states([*first, *ids]) == [JobState.COMPLETED] * 8
    assert processes.most == 1
    assert worker.moments.count("released") == 0
