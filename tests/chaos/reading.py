"""What the engine says when everything has ended, read straight from it."""

import time
from collections.abc import Collection

import msgspec

from tests.chaos.queues import VALVE
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.jobs.job import STATES, Failure, JobRecord
from tidemill.model.queues.layers import Layers, declared_fields
from tidemill.model.view import PAGE_LIMIT, JobFilter, QueueInfo


class SeenJob(msgspec.Struct, kw_only=True):
    """A job, as far as checkers look at it."""

    state: str
    task: str = "quick"
    queue: str = "default"
    key: str = ""
    suspect: bool = False
    attempts: int = 1
    max_attempts: int = 5
    crashes: int = 0
    lost_runs: int = 0
    replays: int = 0
    settled_fence: int = 0
    result: str = ""
    failures: list[Failure] = []
    failure_count: int = 0
    schedule: str = ""
    on_dead: str = ""
    created_at: int = 0
    ready_at: int | None = None
    """The last time that it became ready."""
    claimed_at: int | None = None
    ended_at: int | None = None


class SeenSchedule(msgspec.Struct, kw_only=True):
    """A schedule."""

    last_at: int | None = None
    next_at: int | None = None


class SeenQueue(msgspec.Struct, kw_only=True):
    """The queue whose options change: its concurrency, as each layer has it."""

    declared: int | None = None
    overrides: list[int | None] = []
    """The value that is set over it, if one is."""
    in_force: int | None = None
    paused: bool = False


class Reading(msgspec.Struct, kw_only=True):
    """All of it."""

    jobs: dict[str, SeenJob] = {}
    listed: dict[str, list[str]] = {}
    """State -> the ids that a listing of that state shows."""
    counted: dict[str, int] = {}
    """State -> what the engine's counts say, over all queues."""
    finished: dict[str, int] = {}
    """completed, failed, dead, cancelled: what the engine's window of a day says."""
    drained_s: float | None = None
    """How long it took from the last healing until nothing was live; None: it never came to that."""
    schedules: dict[str, SeenSchedule] = {}
    valve: SeenQueue | None = None
    """None: nobody has declared it."""
    caught_up_s: float | None = None
    """How long it took from the last healing until every schedule had fired what was due by then; None: it
    never came to that."""
    engine_offset_s: float = 0.0
    """What to add to the monotonic clock to get the engine's, in seconds."""


def seen(job: JobRecord) -> SeenJob:
    return SeenJob(
        state=job.state.value,
        task=job.task.rpartition(".")[2],
        queue=job.queue,
        key=job.key or "",
        suspect=job.suspect,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        crashes=job.crashes,
        lost_runs=job.lost_runs,
        replays=job.replays,
        settled_fence=job.settled_fence or 0,
        result=(job.result or b"").decode(),
        failures=list(job.failures),
        failure_count=job.failure_count,
        schedule=job.schedule or "",
        on_dead=job.on_dead or "",
        created_at=job.created_at,
        ready_at=job.ready_at,
        claimed_at=job.claimed_at,
        ended_at=job.ended_at,
    )


async def read_engine(
    engine: Engine, known: Collection[str], *, drained_s: float | None, caught_up_s: float | None
) -> Reading:
    """Every job that is listed, and every job that anybody knows of."""
    listed = {state.value: await _listing(engine, JobFilter(state=state)) for state in STATES}
    wanted = sorted({*known, *(one for ids in listed.values() for one in ids)})
    jobs: dict[str, SeenJob] = {}
    for start in range(0, len(wanted), BATCH_LIMIT):
        chunk = wanted[start : start + BATCH_LIMIT]
        found = await engine.inspect.get([bytes.fromhex(one) for one in chunk])
        jobs |= {one: seen(job) for one, job in zip(chunk, found, strict=True) if job is not None}
    counts = await engine.inspect.counts()
    before = time.monotonic()
    engine_now = await engine.now()
    offset = engine_now / 1e6 - (before + time.monotonic()) / 2
    return Reading(
        jobs=jobs,
        listed=listed,
        counted={state.value: sum(one.in_state(state) for one in counts) for state in STATES},
        finished={
            name: sum(getattr(one.window, name) for one in counts)
            for name in ("completed", "failed", "died", "cancelled")
        },
        drained_s=drained_s,
        caught_up_s=caught_up_s,
        schedules={
            one.name: SeenSchedule(last_at=one.last_at, next_at=one.next_at)
            for one in await engine.schedules.list()
        },
        valve=next((seen_queue(one) for one in await engine.queues.list() if one.name == VALVE), None),
        engine_offset_s=offset,
    )


def seen_queue(queue: QueueInfo) -> SeenQueue:
    declared = declared_fields(Layers(declared=queue.declared))
    return SeenQueue(
        declared=declared.get("concurrency"),
        overrides=[one.value for name, one in queue.overrides.items() if name == "concurrency"],
        in_force=queue.options.concurrency,
        paused=queue.paused_at is not None,
    )


async def _listing(engine: Engine, only: JobFilter) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await engine.inspect.list(only, cursor=cursor, limit=PAGE_LIMIT)
        ids += [job.id.hex() for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return ids


async def live(engine: Engine) -> int:
    """How many jobs have not ended."""
    counts = await engine.inspect.counts()
    return sum(one.blocked + one.scheduled + one.ready + one.running for one in counts)
