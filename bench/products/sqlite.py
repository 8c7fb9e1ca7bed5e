"""The product on SQLite."""

from bench.measures import events, quiet
from bench.peers.environment import PeerMissing
from bench.peers.subjects import huey
from bench.plan import BULK
from bench.product import WARM_UP, Case, Measure, Product
from bench.report import Figure
from bench.rounds import Comparison
from tidemill.cli.bench.run import MANY_SLOTS

BOUNDS = quiet.Bounds(p50_ms=2.0, p99_ms=10.0, memory_mb=90.0)


async def api(bench: Product) -> list[Comparison]:
    """Enqueue through the API, against a raw insert of the same durability."""
    few, many, make = bench.plan.jobs_at(1), bench.plan.jobs, bench.make
    await make.bulk(WARM_UP)()
    cases = [
        Case("sync enqueue, one thread", make.singles(few), "raw", make.raw_inserts(few, 1), 0.6),
        Case("enqueue_many", make.bulk(many), "raw", make.raw_inserts(many, BULK), 0.5),
    ]
    return await bench.compare("api", cases)


async def work(bench: Product) -> list[Comparison]:
    """No-op jobs through real workers."""
    loop, thread, make = bench.app.in_loop, bench.app.in_thread, bench.make
    raw = make.raw_drain(bench.plan.jobs)
    async with (
        bench.workers(1, MANY_SLOTS) as one,
        bench.workers(2, MANY_SLOTS) as two,
        bench.workers(1, None) as default,
    ):
        quick = make.through(one, loop)
        cases = [
            Case("async, -c 200", quick, "raw", raw, 0.45),
            Case("async, default slots", make.through(default, loop), "raw", raw),
            Case("def, -c 200", make.through(one, thread), "async", quick, 0.7),
            Case("async, 2 processes", make.through(two, loop), "1 process", quick, 1.0),
        ]
        return await bench.compare("work", cases)


async def peer(bench: Product) -> list[Comparison]:
    """The same beside Huey's SQLite queue."""
    plan, few, singles = bench.plan, bench.plan.jobs_at(10), bench.plan.jobs_at(1)
    try:
        drains = [huey(plan.folder, "drain", few, durability) for durability in ("full", "off")]
        enqueues = [huey(plan.folder, "enqueue", singles, durability) for durability in ("full", "off")]
    except PeerMissing as missing:
        bench.steps.say(f"NOT MEASURED: {missing}")
        return []
    async with bench.workers(1, MANY_SLOTS) as workers:
        quick, one_by_one = bench.make.through(workers, bench.app.in_loop), bench.make.singles(singles)
        cases = [
            Case("async, -c 200", quick, "huey", drains[0], 4.0),
            Case("async, -c 200", quick, "huey, no sync", drains[1]),
            Case("sync enqueue, one thread", one_by_one, "huey", enqueues[0]),
            Case("sync enqueue, one thread", one_by_one, "huey, no sync", enqueues[1]),
        ]
        return await bench.compare("peer", cases)


async def idle(bench: Product) -> list[Figure]:
    """An idle worker: no ratios, but bounds that everybody feels."""
    return await quiet.measure(bench.engine, bench.plan, bench.steps, BOUNDS)


async def told(bench: Product) -> list[Comparison | Figure]:
    """What it costs that somebody listens to events, and that somebody might."""
    return await events.measure(bench, processes=1)


MEASURES: dict[str, Measure] = {"api": api, "work": work, "peer": peer, "quiet": idle, "events": told}
