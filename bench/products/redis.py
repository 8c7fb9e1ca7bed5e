"""The product on Redis: a private server, its append-only file synced once a second; two worker processes."""

from bench.measures import api, crowd, events, memory, quiet
from bench.product import Case, Measure, Product
from bench.report import Figure
from bench.rounds import Comparison
from tidemill.cli.bench.run import MANY_SLOTS

PROCESSES = 2
BOUNDS = quiet.Bounds(p50_ms=1.5, p99_ms=6.0, worker_memory_mb=80.0)


async def enqueues(bench: Product) -> list[Comparison]:
    return await api.measure(bench, "raw bulk")


async def work(bench: Product) -> list[Comparison]:
    """No-op jobs through real workers. Processor time is the workers' and the server's."""
    loop, thread, make, jobs = bench.app.in_loop, bench.app.in_thread, bench.make, bench.plan.jobs
    raw, pair = make.raw_drain(jobs), make.raw_pair(jobs)
    async with bench.workers(PROCESSES, MANY_SLOTS) as two, bench.workers(PROCESSES, None) as default:
        quick = make.through(two, loop)
        cases = [
            Case("async, 2 processes, -c 200", quick, "raw", raw, 0.45, 2.0),
            Case("async, 2 processes, -c 200", quick, "2 raw", pair, 0.45, 2.0),
            Case("async, 2 processes, default slots", make.through(default, loop), "raw", raw),
            Case("def, 2 processes, -c 200", make.through(two, thread), "async", quick),
        ]
        return await bench.compare("work", cases)


async def idle(bench: Product) -> list[Figure]:
    """An idle worker: no ratios, but bounds that everybody feels."""
    return await quiet.measure(bench.engine, bench.plan, bench.steps, BOUNDS)


async def told(bench: Product) -> list[Comparison | Figure]:
    """What it costs that somebody listens to events, and that somebody might."""
    return await events.measure(bench, PROCESSES)


async def finished(bench: Product) -> list[Comparison]:
    return await crowd.finished(bench.plan, bench.steps)


async def scheduled(bench: Product) -> list[Comparison]:
    return await crowd.scheduled(bench.plan, bench.steps)


MEASURES: dict[str, Measure] = {
    "api": enqueues,
    "work": work,
    "quiet": idle,
    "events": told,
    "memory": memory.measure,
    "finished": finished,
    "scheduled": scheduled,
}
