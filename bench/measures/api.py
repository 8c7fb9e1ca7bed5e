"""Enqueue through the API, against raw inserts of the same store."""

from bench.plan import BULK
from bench.product import WARM_UP, Case, Product
from bench.rounds import Comparison

CALLERS = 50
WANTED_MERGED, WANTED_BULK = 0.4, 0.6


async def measure(bench: Product, bulk: str) -> list[Comparison]:
    """One by one, from many callers at once, in bulk; `bulk` is what the raw loop's way is called."""
    few, some, many, make = bench.plan.jobs_at(1), bench.plan.jobs_at(10), bench.plan.jobs, bench.make
    await make.bulk(WARM_UP)()
    ours, merged = make.callers(some, CALLERS), make.raw_inserts(some, CALLERS)
    inside, against = make.callers(some, CALLERS, block=True), f"raw, {CALLERS} merged"
    cases = [
        Case("sync enqueue, one thread", make.singles(few), "raw", make.raw_inserts(few, 1)),
        Case(f"aenqueue, {CALLERS} callers", ours, against, merged, WANTED_MERGED),
        Case(f"aenqueue in `async with app`, {CALLERS} callers", inside, against, merged, WANTED_MERGED),
        Case("enqueue_many", make.bulk(many), bulk, make.raw_inserts(many, BULK), WANTED_BULK),
    ]
    return await bench.compare("api", cases)
