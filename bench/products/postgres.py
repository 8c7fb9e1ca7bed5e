"""The product on PostgreSQL: a private server with stock settings, and two worker processes."""

from bench.measures import api, crowd, events, held, quiet
from bench.peers.environment import PeerMissing
from bench.peers.subjects import graphile, pgqueuer
from bench.product import Case, Measure, Product
from bench.report import Figure
from bench.rounds import Comparison
from bench.stores import PostgresStore
from tidemill.cli.bench.run import MANY_SLOTS

PROCESSES = 2
BOUNDS = quiet.Bounds(p50_ms=2.5, p99_ms=10.0, worker_memory_mb=80.0)


async def enqueues(bench: Product) -> list[Comparison]:
    return await api.measure(bench, "raw unnest")


async def work(bench: Product) -> list[Comparison]:
    """No-op jobs through real workers. Processor time is the workers' and the server's."""
    loop, thread, make = bench.app.in_loop, bench.app.in_thread, bench.make
    raw = make.raw_drain(bench.plan.jobs)
    async with bench.workers(PROCESSES, MANY_SLOTS) as two, bench.workers(1, None) as default:
        quick = make.through(two, loop)
        cases = [
            Case("async, 2 processes, -c 200", quick, "raw", raw, 0.45, 2.0),
            Case("async, 1 process, default slots", make.through(default, loop), "raw", raw),
            Case("def, 2 processes, -c 200", make.through(two, thread), "async", quick),
        ]
        return await bench.compare("work", cases)


async def peer(bench: Product) -> list[Comparison]:
    """The same beside other queues on PostgreSQL, two processes each."""
    plan, make = bench.plan, bench.make
    store = plan.store
    assert isinstance(store, PostgresStore)
    cases = []
    async with bench.workers(PROCESSES, MANY_SLOTS) as workers:
        ours, bulk = make.through(workers, bench.app.in_loop), make.bulk(plan.jobs)
        for name, make_peer, wanted in (("PgQueuer", pgqueuer, 1.5), ("Graphile", graphile, 1.0)):
            try:
                peer = await make_peer(store)
            except PeerMissing as missing:
                bench.steps.say(f"NOT MEASURED: {missing}")
                continue
            drain, fill = peer.drain(plan.jobs, PROCESSES), peer.fill(plan.jobs)
            cases += [
                Case("async, 2 processes, -c 200", ours, name, drain, wanted),
                Case("enqueue_many", bulk, name, fill, 1.0),
            ]
        return await bench.compare("peer", cases)


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
    "peer": peer,
    "quiet": idle,
    "events": told,
    "finished": finished,
    "scheduled": scheduled,
    "reader": held.reader,
    "writer": held.writer,
    "late": held.late,
}
