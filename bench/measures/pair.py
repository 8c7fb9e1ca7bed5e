"""Two processes on one store: what they do together, and whether they share fairly."""

import sys
from collections.abc import Awaitable, Callable

import msgspec

from bench.child import Errand
from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.race import race
from bench.rounds import Comparison, Question, Subject, Turn, compare
from tidemill.engine.registry import connect

BATCHES = (10, 100)
BUSIER_WANTED = 0.6


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Two engines in two processes against two raw loops."""
    advance = steps.begin("pair", 2 * plan.rounds * len(BATCHES))
    engine, raw = await connect(plan.url("pair")), await plan.store.raw("pair")

    def errand_of(engine: bool, batch: int) -> Errand:
        place = plan.url("pair") if engine else plan.store.raw_place("pair")
        return Errand(engine=engine, place=place, durability=plan.durability, batch=batch)

    async def fill_engine(count: int) -> None:
        await fill(engine, new_jobs(count))

    async def fill_raw(count: int) -> None:
        for chunk in chunks(raw_jobs(count), BULK):
            await raw.enqueue(chunk)

    try:
        comparisons = []
        for batch in BATCHES:
            shares: list[float] = []
            jobs = 2 * plan.jobs_at(batch)
            question = Question(
                measure="pair",
                case=f"two processes, batch {batch}",
                against="raw",
                busier_wanted=BUSIER_WANTED,
            )
            ours = pair_turn(plan, errand_of(True, batch), fill_engine, jobs, shares)
            theirs = pair_turn(plan, errand_of(False, batch), fill_raw, jobs, [])
            found = await compare(question, ours, theirs, plan.rounds, advance)
            found.busier = shares
            comparisons.append(found)
        return comparisons
    finally:
        await raw.close()
        await engine.close()


def pair_turn(
    plan: Plan, errand: Errand, refill: Callable[[int], Awaitable[None]], jobs: int, shares: list[float]
) -> Subject:
    """Fill, then let two children drain it together."""
    command = (sys.executable, "-m", "bench.child", msgspec.json.encode(errand).decode())

    async def turn() -> Turn:
        await refill(jobs)
        turn, reports = await race(command, 2, jobs, plan.store.cpu_s)
        shares.append(max(report.jobs for report in reports) / jobs)
        return turn

    return turn
