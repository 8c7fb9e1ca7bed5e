"""An idle worker: how soon it has a job, what it costs, how large it is; and what `import penstock` takes."""

from bench.plan import Plan
from bench.progress import Steps
from bench.report import Figure
from penstock.cli.bench import measures
from penstock.cli.bench.crew import hire
from penstock.engine.protocol import Engine

SAMPLES = 300
P50_MS, P99_MS = 2.0, 10.0
IMPORT_MS = 120.0
IDLE_PERCENT = 1.0
MEMORY_MB = 90.0


async def measure(engine: Engine, plan: Plan, steps: Steps) -> list[Figure]:
    """Bounds, each the median of the rounds."""
    from penstock.cli.bench import app

    advance = steps.begin("quiet", 2 * plan.rounds + 1)
    samples = min(SAMPLES, plan.jobs)
    waits, shares = [], []
    async with hire(engine, "quiet") as crew:
        await measures.latency(engine, app.stamp, crew, 10)
        for _ in range(plan.rounds):
            waits.append(await measures.latency(engine, app.stamp, crew, samples))
            advance()
            shares.append(100 * await measures.idle_share(crew))
            advance()
        memory = crew.memory_mb()
    took = measures.import_ms()
    advance()
    called, returned = [wait.from_call for wait in waits], [wait.from_return for wait in waits]
    return [
        Figure("pick-up p50, from the call", "ms", [wait.p50 for wait in called], P50_MS),
        Figure("pick-up p95, from the call", "ms", [wait.p95 for wait in called]),
        Figure("pick-up p99, from the call", "ms", [wait.p99 for wait in called], P99_MS),
        Figure("pick-up p50, from the commit", "ms", [wait.p50 for wait in returned]),
        Figure("pick-up p99, from the commit", "ms", [wait.p99 for wait in returned]),
        Figure("idle worker", "% of a core", shares, IDLE_PERCENT),
        Figure("memory, supervisor and 1 worker", "MB", [memory], MEMORY_MB),
        Figure("import penstock", "ms", [took], IMPORT_MS),
    ]
