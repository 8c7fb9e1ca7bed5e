"""A store with jobs in it, for commands to look at."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import Failure, JobRecord, NewJob
from tidemill.model.jobs.run import (
    ClaimedJob,
    ClaimRequest,
    Completed,
    Failed,
    LogLine,
    Note,
    Settlement,
    Want,
)
from tidemill.model.member import MemberInfo
from tidemill.model.time import HOUR

T = TypeVar("T")

DEATH = Failure(
    kind="error",
    error="builtins.ValueError",
    message="no such user\nsecond line \x1b[31m",
    traceback="Traceback (most recent call last):\n  ...\nValueError: no such user",
)


class Store:
    """One engine; every method opens it, does one thing and closes it, as a command does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._member, self._claimant, self._claims = new_id(), new_id(), 0

    def do(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        async def run() -> T:
            engine = await connect(self.url)
            try:
                return await work(engine)
            finally:
                await engine.close()

        return asyncio.run(run())

    def put(
        self,
        count: int = 1,
        *,
        task: str = "shop.mail",
        queue: str = "default",
        body: bytes = b'[["a@b.c"],{"n":1}]',
        delay: int = 0,
        key: str | None = None,
    ) -> list[JobId]:
        """Enqueue jobs."""
        jobs = [
            NewJob(id=new_id(), task=task, queue=queue, body=body, delay=delay, key=key) for _ in range(count)
        ]

        async def work(engine: Engine) -> None:
            for begin in range(0, count, 1_000):
                await engine.jobs.enqueue(jobs[begin : begin + 1_000])

        self.do(work)
        return [job.id for job in jobs]

    def take(self, *, queue: str = "default", most: int = 1_000) -> list[ClaimedJob]:
        """Claim jobs: they run."""

        async def work(engine: Engine) -> list[ClaimedJob]:
            info = MemberInfo(id=self._member, name="host:1", pid=1, queues=(queue,), slots=3, lease=HOUR)
            await engine.members.heartbeat(info)
            self._claims += 1
            request = ClaimRequest(
                member=self._member,
                claimant=self._claimant,
                number=self._claims,
                wants=(Want(queue),),
                most=most,
            )
            return (await engine.jobs.claim(request)).jobs

        return self.do(work)

    def end(self, claimed: Sequence[ClaimedJob], outcome: Completed | Failed) -> list[JobId]:
        """Settle what runs."""

        async def work(engine: Engine) -> None:
            settlements = [Settlement(id=job.id, fence=job.fence, outcome=outcome, ran=10) for job in claimed]
            await engine.jobs.settle(settlements)

        self.do(work)
        return [job.id for job in claimed]

    def dead(self, count: int = 1, *, queue: str = "default", task: str = "shop.mail") -> list[JobId]:
        """Dead letters."""
        self.put(count, queue=queue, task=task)
        return self.end(self.take(queue=queue), Failed(failure=DEATH))

    def completed(self, count: int = 1, *, queue: str = "default") -> list[JobId]:
        """Completed jobs."""
        self.put(count, queue=queue)
        return self.end(self.take(queue=queue), Completed(result=b"42"))

    def log(self, job: ClaimedJob, *messages: str) -> None:
        """Lines in a running job's log."""
        notes = [
            Note(id=job.id, fence=job.fence, entry=LogLine(number=number, level="info", message=message))
            for number, message in enumerate(messages, 1)
        ]

        async def work(engine: Engine) -> None:
            await engine.jobs.write(notes)

        self.do(work)

    def get(self, job_id: JobId) -> JobRecord | None:
        """One record."""

        async def work(engine: Engine) -> JobRecord | None:
            [job] = await engine.inspect.get([job_id])
            return job

        return self.do(work)

    def states(self) -> dict[str, int]:
        """How many jobs are in each state that has any."""

        async def work(engine: Engine) -> dict[str, int]:
            counts = await engine.inspect.counts()
            names = ("blocked", "scheduled", "ready", "running", "completed", "dead", "cancelled")
            sums = {name: sum(getattr(queue, name) for queue in counts) for name in names}
            return {name: count for name, count in sums.items() if count}

        return self.do(work)
