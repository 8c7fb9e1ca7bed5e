"""What claim + settle costs in one process, in one trip and in two."""

from collections.abc import Awaitable, Callable

from bench.claimer import Claimer
from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BATCHES, BULK, Plan
from bench.progress import Steps
from bench.raw.sqlite import Loop
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from penstock.engine.protocol import Engine
from penstock.engine.registry import connect

WANTED = {("one trip", 100): 0.7}


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Each shape and batch size against the raw loop in the same."""
    advance = steps.begin("claim", 2 * plan.rounds * 2 * len(BATCHES))
    engine = await connect(plan.url("claim"))
    raw = Loop(plan.raw_path("claim"), plan.durability)
    try:
        claimer = await Claimer.join(engine)
        await engine_turn(engine, claimer.drain, 100, plan.warm_up)()
        await raw_turn(raw, raw.drain, 100, plan.warm_up)()
        shapes = {
            "one trip": (claimer.drain, raw.drain),
            "two trips": (claimer.drain_apart, raw.drain_apart),
        }
        comparisons = []
        for shape, (ours, theirs) in shapes.items():
            for batch in BATCHES:
                question = Question(
                    measure="claim",
                    case=f"{shape}, batch {batch}",
                    against="raw",
                    wanted=WANTED.get((shape, batch)),
                )
                engines = engine_turn(engine, ours, batch, plan.jobs_at(batch))
                raws = raw_turn(raw, theirs, batch, plan.jobs_at(batch))
                comparisons.append(await compare(question, engines, raws, plan.rounds, advance))
        return comparisons
    finally:
        raw.close()
        await engine.close()


def engine_turn(engine: Engine, drain: Callable[[int], Awaitable[int]], batch: int, jobs: int) -> Subject:
    """Fill, then time the drain."""

    async def turn() -> Turn:
        await fill(engine, new_jobs(jobs))
        with Watch() as watch:
            settled = await drain(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn


def raw_turn(raw: Loop, drain: Callable[[int], int], batch: int, jobs: int) -> Subject:
    """The same on the raw loop."""

    async def turn() -> Turn:
        for chunk in chunks(raw_jobs(jobs), BULK):
            raw.enqueue(chunk)
        with Watch() as watch:
            settled = drain(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn
