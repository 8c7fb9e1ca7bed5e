"""An idle worker: how soon it has a job, what it costs, how large it is; and what `import tidemill` takes."""

from typing import NamedTuple

from bench.plan import Plan
from bench.progress import Steps
from bench.report import Figure
from tidemill.cli.bench import measures
from tidemill.cli.bench.workers import start_workers
from tidemill.engine.protocol import Engine

SAMPLES = 300
IMPORT_MS = 120.0
IDLE_PERCENT = 1.0
LATE_MS = 50.0
"""A delayed job on an idle cluster starts at most this late, 99 times of 100."""


class Bounds(NamedTuple):
    """What we are content with on a store."""

    p50_ms: float
    p99_ms: float
    memory_mb: float | None = None
    """Of supervisor and worker process together."""
    worker_memory_mb: float | None = None


async def measure(engine: Engine, plan: Plan, steps: Steps, bounds: Bounds) -> list[Figure]:
    """Bounds, each the median of the rounds."""
    from tidemill.cli.bench import app

    advance = steps.begin("quiet", 3 * plan.rounds + 1)
    samples = min(SAMPLES, plan.jobs)
    waits, late, shares = [], [], []
    async with start_workers(engine, "quiet") as workers:
        await measures.latency(engine, app.stamp, workers, 10)
        for _ in range(plan.rounds):
            waits.append(await measures.latency(engine, app.stamp, workers, samples))
            advance()
            late.append(await measures.lateness(engine, app.app, app.stamp, workers, samples))
            advance()
            shares.append(100 * await measures.idle_share(workers))
            advance()
        memory, of_worker = workers.memory_mb(), workers.worker_memory_mb()
    took = measures.import_ms()
    advance()
    called, returned = [wait.from_call for wait in waits], [wait.from_return for wait in waits]
    return [
        Figure("pick-up p50, from the call", "ms", [wait.p50 for wait in called], bounds.p50_ms),
        Figure("pick-up p95, from the call", "ms", [wait.p95 for wait in called]),
        Figure("pick-up p99, from the call", "ms", [wait.p99 for wait in called], bounds.p99_ms),
        Figure("pick-up p50, from the commit", "ms", [wait.p50 for wait in returned]),
        Figure("pick-up p99, from the commit", "ms", [wait.p99 for wait in returned]),
        Figure("late by p50, a delayed job", "ms", [one.p50 for one in late]),
        Figure("late by p99, a delayed job", "ms", [one.p99 for one in late], LATE_MS),
        Figure("idle worker", "% of a core", shares, IDLE_PERCENT),
        Figure("memory, supervisor and 1 worker", "MB", [memory], bounds.memory_mb),
        Figure("memory, 1 worker process", "MB", [of_worker], bounds.worker_memory_mb),
        Figure("import tidemill", "ms", [took], IMPORT_MS),
    ]
