"""A worker in this process, on a real engine, with heartbeats by hand: what the tests of it share."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobRecord, JobState, NewJob
from tidemill.model.member import HeartbeatReply, MemberInfo
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import span_of
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry
from tidemill.testing.contract.fixtures import configure
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.messages import Drained
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.in_process import Processes
from tidemill.worker.worker import Worker

QUEUE = "default"


class Workplace:
    """One worker and its member. Nothing heartbeats unless a test says so; each heartbeat lasts for a whole
    test."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.registry = Registry()
        self.member = MemberInfo(id=new_id(), name="host:1")
        self.claimant = new_id()
        self.worker: Worker
        self.held_table: HeldTable
        self._running: asyncio.Task[Drained] | None = None

    # The app

    def task(
        self, function: Callable[..., Any], *, timeout: float | None = None, **options: Any
    ) -> Callable[..., Any]:
        """Register a function under its own name."""
        span = None if timeout is None else span_of(timeout)
        self.registry.add(Definition(function, name=function.__name__, timeout=span, **options))
        return function

    async def queue(self, name: str, **options: Any) -> None:
        """Declare a queue, in the app and in the engine."""
        self.registry.declare(name, options)
        await configure(self.engine, name, QueueOptions(**options))

    async def enqueue(self, task: str, *args: Any, times: int = 1, **options: Any) -> JobId:
        """New jobs with these arguments; the id of the first."""
        return (await self.enqueue_many(task, *args, times=times, **options))[0]

    async def enqueue_many(self, task: str, *args: Any, times: int, **options: Any) -> list[JobId]:
        body = msgspec.json.encode([args, {}])
        fields = {"task": task, "queue": QUEUE, "body": body, **options}
        jobs = [NewJob(id=new_id(), **fields) for _ in range(times)]
        await self.engine.jobs.enqueue(jobs)
        return [job.id for job in jobs]

    # The worker

    async def start(
        self,
        *,
        engine: Engine | None = None,
        processes: Processes | None = None,
        takes_suspects: bool = False,
        supervised: bool = True,
        **config: Any,
    ) -> Worker:
        """Begin to work, by way of another engine if one is given."""
        settings = WorkerConfig(url="", **{"slots": 4, "poll_s": 60.0, **config})
        self.held_table = HeldTable.create(settings.held_capacity)
        await self.heartbeat()
        self.worker = Worker(
            engine or self.engine,
            self.registry,
            settings,
            member=self.member.id,
            claimant=self.claimant,
            held_table=self.held_table,
            processes=processes,
            takes_suspects=takes_suspects,
            supervised=supervised,
        )
        self._running = asyncio.create_task(self.worker.run())
        return self.worker

    def claim_ahead(self, count: int) -> None:
        """Let so many wait for a slot from now on, as if a load of short jobs had been measured."""
        ahead = self.worker._slots.ahead
        ahead.limit = count
        ahead.trip = lambda **_: None  # type: ignore[method-assign]

    def read_no_options(self) -> None:
        """Let the worker know of queues what its app declares, and nothing else."""
        self.worker._options._apply = lambda _: None

    async def settled(self, times: int = 1) -> None:
        """Wait until so many outcomes were answered, counted from the start."""
        await self._unless_over(self.worker.moments.reached("settled", times))

    async def released(self, times: int = 1) -> None:
        await self._unless_over(self.worker.moments.reached("released", times))

    async def idle(self) -> None:
        """Wait for a claim that finds nothing, made after this call, with nothing running."""
        self.worker._unsettled.claim_soon()
        await self._unless_over(self.worker.moments.next("idle"))

    async def drained(self, timeout_s: float | None = None) -> Drained:
        """Drain, and wait for the end."""
        self.worker.drain(timeout_s)
        return await self.over()

    async def over(self) -> Drained:
        """Wait for the end."""
        assert self._running is not None
        return await self._running

    async def heartbeat(self) -> HeartbeatReply:
        """One heartbeat of the member, as a supervisor makes it: from the held table; the reply goes to the
        worker."""
        sent_ns = boot_ns()
        reply = await self.engine.members.heartbeat(self.member, [self.held_table.heartbeat(self.claimant)])
        if self._running is not None:
            self.worker.lost(reply.lost)
            self.worker.stop_requested([(ask.id, ask.fence) for ask in reply.stop_requests])
        self.held_table.heartbeat_answered(sent_ns + 3_600 * 10**9)  # the lease lasts for the whole test
        if self._running is not None:
            self.worker.heartbeat_answered(True, reply.options)
        return reply

    async def close(self) -> None:
        if self._running is None:
            return
        if not self._running.done():
            self.worker.hurry()
        await asyncio.gather(self._running, return_exceptions=True)
        self.held_table.close()

    async def _unless_over(self, fact: Any) -> None:
        """Wait for a fact; a worker that ends meanwhile fails the test with its own error."""
        assert self._running is not None
        waiting = asyncio.ensure_future(fact)
        await asyncio.wait({waiting, self._running}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            self._running.result()
            raise AssertionError("the worker ended before that happened")

    # What became of it

    async def job(self, job_id: JobId) -> JobRecord:
        (job,) = await self.engine.inspect.get([job_id])
        assert job is not None
        return job

    async def states(self, ids: Sequence[JobId]) -> list[JobState | None]:
        return [job.state if job else None for job in await self.engine.inspect.get(ids)]

    def held(self) -> int:
        """Rows in the held table."""
        return len(self.held_table.rows())
