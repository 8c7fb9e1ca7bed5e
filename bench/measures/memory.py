"""What one job takes of a server's memory, by its state: a body of 210 bytes, everything included."""

from bench.claimer import Claimer
from bench.load import fill, new_jobs
from bench.product import Product
from bench.report import Figure
from bench.stores import RedisStore
from tidemill.cli.bench.workers import declare
from tidemill.engine.registry import connect
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import DAY

QUEUED = 50_000


async def measure(bench: Product) -> list[Figure]:
    """By the server's own account of its memory, before and after."""
    store, jobs = bench.plan.store, max(100, round(QUEUED * min(1.0, 2 * bench.plan.scale)))
    assert isinstance(store, RedisStore)
    advance = bench.steps.begin("memory", 4)
    engine = await connect(bench.plan.url("memory"))
    found = []
    try:
        claimer = await Claimer.join(engine)

        async def note(state: str, before: int) -> None:
            found.append(Figure(f"memory, {state}", "bytes", [(store.used_bytes("memory") - before) / jobs]))
            advance()

        empty = store.used_bytes("memory")
        await fill(engine, new_jobs(jobs))
        await note("a queued job", empty)
        await claimer.drain(100)
        await note("a finished job", empty)
        before = store.used_bytes("memory")
        await declare(engine, "default", QueueOptions(keep_body=False))
        await fill(engine, new_jobs(jobs))
        await claimer.drain(100)
        await note("a finished job without its body", before)
        before = store.used_bytes("memory")
        await fill(engine, new_jobs(jobs, delay=DAY))
        await note("a scheduled job", before)
    finally:
        await engine.close()
    return found
