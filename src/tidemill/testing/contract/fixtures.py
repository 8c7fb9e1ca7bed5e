"""What the tests of the contract share: clients, a clock moved by hand, a claimant, a picture of everything.

The project that runs the suite defines `engine_url`; everything else is here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine, Script, Settled, TransactionsFacet
from tidemill.engine.registry import connect as open_engine
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import Failure, Fence, JobRecord, JobState, NewJob, Stored
from tidemill.model.jobs.run import (
    Answer,
    Claim,
    ClaimedJob,
    ClaimRequest,
    Completed,
    Entry,
    Failed,
    Note,
    Outcome,
    Release,
    ReleaseReason,
    Settlement,
    Stopped,
    Then,
    Want,
)
from tidemill.model.member import HEARTBEAT, LEASE, ClaimantHeartbeat, HeartbeatReply, MemberInfo
from tidemill.model.queues.layers import Declaration, fields_of
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import MINUTE, SECOND, Instant, Span
from tidemill.model.view import JobFilter

T = TypeVar("T")

START: Instant = 1_800_000_000 * SECOND
"""Where every test's clock begins: a whole minute in January 2027."""

Connect = Callable[[], Awaitable[Engine]]
"""Opens one more client on the test's engine."""


class Clock:
    """The engine's clock, moved by hand."""

    def __init__(self, now: Instant = START) -> None:
        self.now = now

    def forward(self, seconds: float) -> Instant:
        """Let this much time pass."""
        self.now += round(seconds * SECOND)
        return self.now


async def configure(
    engine: Engine, name: str, options: QueueOptions, *, now: Instant | None = None, app: str = "shop"
) -> None:
    """Let an app that starts now declare these options, and nothing else, of a queue."""
    declared_at = await engine.now() if now is None else now
    said = Declaration(fields=fields_of(options), declared_at=declared_at)
    await engine.queues.declare(app, {name: said}, now=now)


class UserConnection(Protocol):
    """A connection of the caller's own, for statements inside the caller's transaction."""

    def execute(self, sql: str, parameters: Any, /) -> Iterable[Sequence[Any]]: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


def play(connection: UserConnection, script: Script[T]) -> T:
    """What an adapter does: every statement, in order, in the transaction that is open."""
    rows: list[Sequence[Any]] = []
    begun = False
    while True:
        try:
            statement = script.send(rows) if begun else next(script)
        except StopIteration as end:
            answer: T = end.value
            return answer
        begun = True
        rows = list(connection.execute(statement.sql, statement.parameters))


@pytest.fixture
def clock() -> Clock:
    """A clock that stands until it is moved."""
    return Clock()


@pytest.fixture
async def connect(engine_url: str) -> AsyncIterator[Connect]:
    """A factory of clients; all of them are closed at the end of the test."""
    async for factory in clients(lambda: engine_url):
        yield factory


async def clients(next_url: Callable[[], str]) -> AsyncIterator[Connect]:
    """The body of `connect`, for engines of which each client needs a URL of its own."""
    opened: list[Engine] = []

    async def one_more() -> Engine:
        engine = await open_engine(next_url())
        opened.append(engine)
        return engine

    yield one_more
    for engine in reversed(opened):
        await engine.close()


@pytest.fixture
async def engine(connect: Connect) -> Engine:
    """One client."""
    return await connect()


@pytest.fixture
async def claimant(engine: Engine, clock: Clock) -> "Claimant":
    """A claimant of a member that has sent a heartbeat once."""
    return await a_claimant(engine, clock)


@pytest.fixture
def user_connection() -> UserConnection | None:
    """Overridden by those whose engine offers transactions."""
    return None


@pytest.fixture
def transactions(engine: Engine) -> TransactionsFacet:
    """The facet, where the engine has it."""
    if engine.transactions is None:
        pytest.skip("this engine has no transactions")
    return engine.transactions


@pytest.fixture
def connection(transactions: TransactionsFacet, user_connection: UserConnection | None) -> UserConnection:
    """The user's connection, where the engine's database can be reached by one."""
    if user_connection is None:
        pytest.skip("no user connection to this database")
    return user_connection


def a_job(task: str = "t", queue: str = "q", **options: Any) -> NewJob:
    """A new job with an id of its own."""
    return NewJob(**{"id": new_id(), "task": task, "queue": queue, **options})


def some_jobs(count: int, **options: Any) -> list[NewJob]:
    """Several jobs that differ in nothing but their ids."""
    return [a_job(**options) for _ in range(count)]


def a_failure(message: str = "no route") -> Failure:
    """What a function that raised leaves behind."""
    return Failure(error="builtins.OSError", message=message, traceback="Traceback: ...")


def created(stored: Sequence[Stored]) -> list[bool]:
    """Which of them an enqueue has created."""
    return [each.created for each in stored]


def ids_of(jobs: Sequence[NewJob | ClaimedJob | JobRecord]) -> list[JobId]:
    """Their ids, in this order."""
    return [job.id for job in jobs]


class Claimant:
    """One child of a member of its own: numbers its claims, and knows what it holds.

    `engine` may be replaced by another client: a claimant is known by its ids, not by its connection.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        name: str = "host:1",
        member: MemberInfo | None = None,
        heartbeat: Span = HEARTBEAT,
        lease: Span = LEASE,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.member = member or MemberInfo(id=new_id(), name=name, heartbeat=heartbeat, lease=lease)
        self.id = new_id()
        self.number = 0
        self.answered = 0
        self.held: dict[Fence, JobId] = {}

    async def heartbeat(self, **instead: Any) -> HeartbeatReply:
        """Heartbeat for the member and this child, as `heartbeat_of` says it."""
        return await self.engine.members.heartbeat(
            self.member, [self.heartbeat_of(**instead)], now=self.clock.now
        )

    def heartbeat_of(self, **instead: Any) -> ClaimantHeartbeat:
        """What this child has; `answered` and `held` may be given instead of the truth."""
        return ClaimantHeartbeat(
            claimant=self.id,
            answered_through=instead.get("answered", self.answered),
            held=tuple(instead.get("held", self.held)),
        )

    def request(self, *queues: str, most: int = 100, **options: Any) -> ClaimRequest:
        """The next claim, not yet made. Without queues: of "q". `most_each` bounds every queue."""
        each = options.pop("most_each", None)
        return ClaimRequest(
            member=self.member.id,
            claimant=self.id,
            number=options.pop("number", self.number + 1),
            wants=tuple(Want(queue, each) for queue in queues or ("q",)),
            most=most,
            **options,
        )

    async def claim(self, *queues: str, most: int = 100, **options: Any) -> Claim:
        """Claim under the next number, and hold what comes."""
        claim = await self.engine.jobs.claim(self.request(*queues, most=most, **options), now=self.clock.now)
        self.receive(claim, options.get("number", self.number + 1))
        return claim

    async def take(self, *queues: str, most: int = 100, **options: Any) -> list[ClaimedJob]:
        """The jobs of the next claim."""
        return (await self.claim(*queues, most=most, **options)).jobs

    async def take_one(self, *queues: str, **options: Any) -> ClaimedJob:
        """The one job that the next claim gives."""
        (job,) = await self.take(*queues, most=1, **options)
        return job

    def receive(self, claim: Claim, number: int | None = None) -> None:
        """The answer to a claim has come."""
        self.number = self.answered = self.number + 1 if number is None else number
        self.held.update((job.fence, job.id) for job in claim.jobs)

    async def settle(self, *settlements: Settlement, claim: ClaimRequest | None = None) -> Settled:
        """Settle, and let go of what was settled."""
        settled = await self.engine.jobs.settle(settlements, claim=claim, now=self.clock.now)
        for settlement in settlements:
            self.held.pop(settlement.fence, None)
        if settled.claim is not None and claim is not None:
            self.receive(settled.claim, claim.number)
        return settled

    async def complete(self, *jobs: ClaimedJob, result: bytes | None = b"1", ran: Span = 0) -> list[Answer]:
        """These runs returned."""
        return (await self.settle(*(completed(job, result, ran=ran) for job in jobs))).answers

    async def fail(
        self, *jobs: ClaimedJob, retry_in: Span | None = None, failure: Failure | None = None, ran: Span = 0
    ) -> list[Answer]:
        """These runs raised."""
        outcome = Failed(failure=failure or a_failure(), retry_in=retry_in)
        return (await self.settle(*(settlement(job, outcome, ran=ran) for job in jobs))).answers

    async def stop(self, *jobs: ClaimedJob) -> list[Answer]:
        """These runs stopped because they were asked to."""
        return (await self.settle(*(settlement(job, Stopped()) for job in jobs))).answers

    async def release(
        self, *jobs: ClaimedJob, delay: Span | None = None, reason: ReleaseReason | None = None
    ) -> list[Answer]:
        """Release these runs."""
        releases = [Release(id=job.id, fence=job.fence, delay=delay, reason=reason) for job in jobs]
        answers = await self.engine.jobs.release(releases, now=self.clock.now)
        for job in jobs:
            self.held.pop(job.fence, None)
        return answers

    async def write(self, job: ClaimedJob, *entries: Entry) -> list[Answer]:
        """Write about a run."""
        notes = [Note(id=job.id, fence=job.fence, entry=entry) for entry in entries]
        return await self.engine.jobs.write(notes, now=self.clock.now)


async def a_claimant(engine: Engine, clock: Clock, **options: Any) -> Claimant:
    """A claimant whose member is known to the engine."""
    claimant = Claimant(engine, clock, **options)
    await claimant.heartbeat()
    return claimant


def settlement(job: ClaimedJob, outcome: Outcome, *, ran: Span = 0, then: Then | None = None) -> Settlement:
    """An outcome under the run's own fence."""
    return Settlement(id=job.id, fence=job.fence, outcome=outcome, ran=ran, then=then)


def completed(
    job: ClaimedJob, result: bytes | None = b"1", *, ran: Span = 0, then: Then | None = None
) -> Settlement:
    """The run returned."""
    return settlement(job, Completed(result=result), ran=ran, then=then)


async def job_of(engine: Engine, job_id: JobId) -> JobRecord:
    """The record of a job that must be there."""
    (job,) = await engine.inspect.get([job_id])
    assert job is not None
    return job


async def states_of(engine: Engine, jobs: Sequence[NewJob | ClaimedJob | JobRecord]) -> list[JobState | None]:
    """Their states, in this order; None for those that are gone."""
    return [job.state if job else None for job in await engine.inspect.get(ids_of(jobs))]


async def listed(engine: Engine, only: JobFilter | None = None, *, limit: int = 1_000) -> list[JobRecord]:
    """Every job that a filter admits, page after page."""
    jobs: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page = await engine.inspect.list(only or JobFilter(), cursor=cursor, limit=limit)
        jobs += page.jobs
        if page.cursor is None:
            return jobs
        assert page.cursor != cursor, "a cursor must move on"
        cursor = page.cursor


async def snapshot(engine: Engine, clock: Clock) -> dict[str, Any]:
    """Everything that can be seen from outside, to be compared with what is seen later or elsewhere."""
    now = clock.now
    ids = ids_of(await listed(engine))
    parts = [ids[at : at + BATCH_LIMIT] for at in range(0, len(ids), BATCH_LIMIT)]
    counts = await engine.inspect.counts(now=now)
    return {
        "order": ids,
        "jobs": {job.id: job for part in parts for job in await engine.inspect.get(part, now=now) if job},
        "logs": {job_id: await engine.inspect.log(job_id) for job_id in ids},
        "checkpoints": {job_id: await engine.inspect.checkpoints(job_id) for job_id in ids},
        "counts": {each.queue: [each.in_state(state) for state in JobState] for each in counts},
        "oldest": {each.queue: each.oldest_ready_at for each in counts},
        "stats": await engine.inspect.stats(since=0, until=now + MINUTE),
        "stats of tasks": await engine.inspect.stats(since=0, until=now + MINUTE, by="task"),
        "windows": {each.queue: each.window for each in counts},
        "queues": await engine.queues.list(),
        "tasks": await engine.tasks.list(),
        "schedules": await engine.schedules.list(),
        "leases": await engine.leases.list(now=now),
        "members": await engine.members.list(now=now),
        "audit": await engine.inspect.audit(limit=1_000),
        "groups": (await engine.inspect.dead_groups(limit=1_000)).groups,
    }
