"""One turn of each measure.

`tidemill bench` repeats them; the repository's `bench` lets them take turns with the raw loop and with other
queues.
"""

import asyncio
import gc
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import msgspec

from tidemill.app.job import Job as Handle
from tidemill.app.task import Task
from tidemill.app.tidemill import Tidemill
from tidemill.cli.bench.workers import BenchWorkers
from tidemill.cli.program import refuse
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId, parse_id
from tidemill.model.jobs.job import LIVE, JobRecord, JobState
from tidemill.model.time import SECOND, moment_of

POLL_S = 0.05
PATIENCE_S = 300.0
"""The longest that one turn may take."""
CHUNK = 1_000
IDLE_S = 5.0
IMPORTS = 7
LEAD, APART = 2 * SECOND, SECOND // 50
"""Due times: the first is this far ahead, the others follow about so far apart."""
PAUSE_S = (0.010, 0.030)
"""Between two jobs of the latency measure: long enough for a worker to be idle again."""


class MeasuredRate(NamedTuple):
    """What one turn took."""

    jobs_s: float
    cpu_us: float
    """Processor time per job, of the processes that were measured."""


class Quantiles(NamedTuple):
    """In milliseconds."""

    p50: float
    p95: float
    p99: float


class Latency(NamedTuple):
    """How long it takes to the first line of the function, in another process."""

    from_call: Quantiles
    """From the call of `enqueue`: the commit is in it."""
    from_return: Quantiles
    """From its return, when the job is durable; 0 where the job was faster than the return."""


def enqueue_one_by_one(task: Task[[str], Any], queue: str, payload: str, jobs: int) -> MeasuredRate:
    """Sync `enqueue` in one thread, each waiting for its commit."""
    call = task.using(queue=queue)
    with Stopwatch() as watch:
        for _ in range(jobs):
            call.enqueue(payload)
    return watch.rate(jobs)


def enqueue_in_bulk(
    app: Tidemill, task: Task[[str], Any], queue: str, payload: str, jobs: int
) -> MeasuredRate:
    """Sync `enqueue_many`, arguments encoded on the way."""
    call = task.using(queue=queue)
    with Stopwatch() as watch:
        app.enqueue_many(call.call(payload) for _ in range(jobs))
    return watch.rate(jobs)


async def throughput(
    engine: Engine,
    app: Tidemill,
    task: Task[[str], Any],
    workers: BenchWorkers,
    payload: str,
    jobs: int,
    *,
    also: Callable[[], float] = lambda: 0.0,
) -> MeasuredRate:
    """No-op jobs through a worker: from the first start to the last settle, by the engine's own record.

    They are enqueued while the queue is paused, so that producing and consuming are not measured together.
    `also` is processor time of others who work for it: a server."""
    await engine.queues.pause(workers.queue)
    call = task.using(queue=workers.queue)
    ids = ids_of(await app.aenqueue_many(call.call(payload) for _ in range(jobs)))
    cpu_s = workers.cpu_s() + also()
    await engine.queues.resume(workers.queue)
    await ended(engine, ids[-1])
    cpu_s = workers.cpu_s() + also() - cpu_s
    await drained(engine, workers.queue)
    records = await records_of(engine, ids)
    first = min(job.started_at or job.claimed_at or 0 for job in records)
    last = max(job.ended_at or 0 for job in records)
    return MeasuredRate(jobs * SECOND / max(1, last - first), 1e6 * cpu_s / jobs)


async def latency(engine: Engine, task: Task[[], Any], workers: BenchWorkers, samples: int) -> Latency:
    """One job at a time to an idle worker. Results are read afterwards: a waiter would write, too."""
    call = task.using(queue=workers.queue)
    called, returned, handles = [], [], []
    for _ in range(samples):
        await asyncio.sleep(random.uniform(*PAUSE_S))
        called.append(time.monotonic_ns())
        handles.append(await call.aenqueue())
        returned.append(time.monotonic_ns())
    await drained(engine, workers.queue)
    records = await records_of(engine, ids_of(handles))
    began = [msgspec.json.decode(job.result or b"0", type=int) for job in records]
    return Latency(_quantiles(called, began), _quantiles(returned, began))


async def lateness(
    engine: Engine, app: Tidemill, task: Task[[], Any], workers: BenchWorkers, samples: int
) -> Quantiles:
    """Jobs for moments that lie apart: how long after its moment each starts, by the engine's own record.
    (What it calls the start is counted back from the settle, so that this is rather too much than too
    little.)"""
    first = await engine.now() + LEAD
    moments = [first + number * APART + random.randrange(APART // 2) for number in range(samples)]
    calls = (task.using(queue=workers.queue, at=moment_of(moment)).call() for moment in moments)
    handles = await app.aenqueue_many(calls)
    await asyncio.sleep((moments[-1] - await engine.now()) / SECOND)
    await drained(engine, workers.queue)
    records = await records_of(engine, ids_of(handles))
    return _quantiles(
        [1_000 * (job.due_at or 0) for job in records], [1_000 * (job.started_at or 0) for job in records]
    )


def _quantiles(since: Sequence[int], until: Sequence[int]) -> Quantiles:
    waits = sorted(max(0.0, (end - begin) / 1e6) for begin, end in zip(since, until, strict=True))
    return Quantiles(*(waits[min(len(waits) - 1, round(share * len(waits)))] for share in (0.5, 0.95, 0.99)))


async def idle_share(workers: BenchWorkers) -> float:
    """The share of one core that an idle worker takes."""
    cpu_s, began = workers.cpu_s(), time.monotonic()
    await asyncio.sleep(IDLE_S)
    return (workers.cpu_s() - cpu_s) / (time.monotonic() - began)


def import_ms() -> float:
    """What `import tidemill` adds to the start of Python."""

    def start(code: str) -> float:
        began = time.perf_counter()
        subprocess.run((sys.executable, "-c", code), check=True)
        return 1e3 * (time.perf_counter() - began)

    return median(start("import tidemill") - start("pass") for _ in range(IMPORTS))


async def ended(engine: Engine, last: JobId) -> None:
    """Wait for the last job of a turn. To read one job disturbs nothing; to count them all does."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                (job,) = await engine.inspect.get([last])
                if job is not None and job.state not in LIVE:
                    return
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise refuse(f"the worker did not finish within {PATIENCE_S:g} s") from None


async def drained(engine: Engine, queue: str) -> None:
    """Wait until nothing is ready or running there."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                [counts] = [found for found in await engine.inspect.counts() if found.queue == queue]
                if counts.ready + counts.running + counts.scheduled == 0:
                    return
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise refuse(f"the worker did not finish within {PATIENCE_S:g} s") from None


async def records_of(engine: Engine, ids: Sequence[JobId]) -> list[JobRecord]:
    """The records of jobs that must have completed."""
    found: list[JobRecord] = []
    for begin in range(0, len(ids), CHUNK):
        for job in await engine.inspect.get(ids[begin : begin + CHUNK]):
            if job is None or job.state is not JobState.COMPLETED:
                raise refuse("a job of the benchmark did not complete; what was measured means nothing")
            found.append(job)
    return found


def ids_of(handles: Sequence[Handle[Any]]) -> list[JobId]:
    return [parse_id(handle.uuid) for handle in handles]


class Stopwatch:
    """Times a block, in seconds and in processor time of this process."""

    def __enter__(self) -> "Stopwatch":
        gc.collect()  # so that no turn pays for a former turn's rubbish
        self._began, self._cpu_began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._took, self._cpu = time.perf_counter() - self._began, time.process_time() - self._cpu_began

    def rate(self, jobs: int) -> MeasuredRate:
        return MeasuredRate(jobs / self._took, 1e6 * self._cpu / jobs)
