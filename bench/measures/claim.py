"""What claim + settle costs in one process, in the shapes that fit the store."""

from bench.claimer import Claimer
from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from bench.stores import Drain, Raw, SqliteRaw
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Each shape and batch size against the raw loop in the same."""
    engine, raw = await connect(plan.url("claim")), await plan.store.raw("claim")
    try:
        claimer = await Claimer.join(engine)
        shapes: dict[str, tuple[Drain, Drain]] = {"overlapping": (claimer.drain_overlapping, raw.drain)}
        if isinstance(raw, SqliteRaw):
            shapes = {
                "one trip": (claimer.drain, raw.drain),
                "two trips": (claimer.drain_apart, raw.drain_apart),
            }
        advance = steps.begin("claim", 2 * plan.rounds * len(shapes) * len(plan.store.batches))
        await engine_turn(plan, engine, claimer.drain, 100, plan.warm_up)()
        await raw_turn(plan, raw, raw.drain, 100, plan.warm_up)()
        comparisons = []
        for shape, (ours, theirs) in shapes.items():
            for batch in plan.store.batches:
                case = f"{shape}, batch {batch}"
                wanted = plan.store.wanted.get(case)
                question = Question(measure="claim", case=case, against="raw", wanted=wanted)
                engines = engine_turn(plan, engine, ours, batch, plan.jobs_at(batch))
                raws = raw_turn(plan, raw, theirs, batch, plan.jobs_at(batch))
                comparisons.append(await compare(question, engines, raws, plan.rounds, advance))
        return comparisons
    finally:
        await raw.close()
        await engine.close()


def engine_turn(plan: Plan, engine: Engine, drain: Drain, batch: int, jobs: int) -> Subject:
    """Fill, then time the drain."""

    async def turn() -> Turn:
        await fill(engine, new_jobs(jobs))
        with Watch(plan.store.cpu_s) as watch:
            settled = await drain(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn


def raw_turn(plan: Plan, raw: Raw, drain: Drain, batch: int, jobs: int) -> Subject:
    """The same on the raw loop."""

    async def turn() -> Turn:
        for chunk in chunks(raw_jobs(jobs), BULK):
            await raw.enqueue(chunk)
        with Watch(plan.store.cpu_s) as watch:
            settled = await drain(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn
