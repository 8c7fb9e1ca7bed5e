"""Reading events in tests: until a fact is there, and no longer than `PATIENCE_S`."""

import asyncio
from collections.abc import Callable, Sequence

from tests.integration.events.conftest import Process
from tidemill import Event, Events, Gap
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobState, NewJob
from tidemill.model.jobs.run import ClaimedJob, ClaimRequest, Want
from tidemill.model.member import MemberInfo
from tidemill.model.time import HOUR

PATIENCE_S = 30.0


async def read_until(events: Events, enough: Callable[[list[Event | Gap]], bool]) -> list[Event | Gap]:
    """Everything that comes until that is enough."""
    found: list[Event | Gap] = []
    async with asyncio.timeout(PATIENCE_S):
        while not enough(found):
            found.append(await anext(events))
    return found


async def read(events: Events, count: int) -> list[Event]:
    """So many events; a gap among them is a failure."""
    found = await read_until(events, lambda found: len(found) == count)
    assert not [one for one in found if isinstance(one, Gap)], found
    return [one for one in found if isinstance(one, Event)]


def states_of(found: Sequence[Event | Gap], job: JobId) -> list[JobState]:
    """What was emitted of one job, in order."""
    return [one.state for one in found if isinstance(one, Event) and one.job_id == job]


def new_jobs(count: int, queue: str = "default", delay: int = 0) -> list[NewJob]:
    return [NewJob(id=new_id(), task="t", queue=queue, delay=delay) for _ in range(count)]


async def take(process: Process, number: int = 1, most: int = 1_000) -> list[ClaimedJob]:
    """Claim as a worker would."""
    member = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    await process.engine.members.heartbeat(member)
    request = ClaimRequest(
        member=member.id, claimant=b"c" * 16, number=number, wants=(Want("default"),), most=most
    )
    return (await process.engine.jobs.claim(request)).jobs
