"""What a million jobs in the way cost: finished ones, or ones due tomorrow.

Both engines hold the same queue; only one of them is crowded.
"""

from collections.abc import Awaitable, Callable

from bench.claimer import Claimer
from bench.load import new_jobs
from bench.measures.claim import engine_turn
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.rounds import Comparison, Question, compare
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.time import DAY

WANTED = 0.9

Crowd = Callable[[Engine, Claimer, int], Awaitable[None]]
"""Puts that many jobs in the way."""


async def finished(plan: Plan, steps: Steps) -> list[Comparison]:
    """Jobs that ended and are retained."""
    return await _measure(plan, steps, "finished", _finish)


async def scheduled(plan: Plan, steps: Steps) -> list[Comparison]:
    """Jobs that are due tomorrow."""
    return await _measure(plan, steps, "scheduled", _schedule)


async def _finish(engine: Engine, claimer: Claimer, count: int) -> None:
    await engine.jobs.enqueue(new_jobs(count))
    await claimer.drain(BULK)


async def _schedule(engine: Engine, _: Claimer, count: int) -> None:
    await engine.jobs.enqueue(new_jobs(count, delay=DAY))


async def _measure(plan: Plan, steps: Steps, name: str, crowd: Crowd) -> list[Comparison]:
    await _gather(plan, steps, name, crowd)
    advance = steps.begin(name, 2 * plan.rounds * len(plan.store.batches))
    crowded = await connect(plan.url(name))
    empty = await connect(plan.url(f"{name}-empty"))
    try:
        busy, idle = await Claimer.join(crowded), await Claimer.join(empty)
        await engine_turn(plan, crowded, busy.drain, 100, plan.warm_up)()
        await engine_turn(plan, empty, idle.drain, 100, plan.warm_up)()
        comparisons = []
        for batch in plan.store.batches:
            case = f"{plan.crowd:,} of them, batch {batch}"
            wanted = plan.store.wanted.get(name, WANTED)
            question = Question(measure=name, case=case, against="empty", wanted=wanted)
            ours = engine_turn(plan, crowded, busy.drain, batch, plan.jobs_at(batch))
            theirs = engine_turn(plan, empty, idle.drain, batch, plan.jobs_at(batch))
            comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
        return comparisons
    finally:
        await empty.close()
        await crowded.close()


async def _gather(plan: Plan, steps: Steps, name: str, crowd: Crowd) -> None:
    """Build the crowd with syncs off: this part is not measured."""
    advance = steps.begin(f"{name}: making {plan.crowd:,}", plan.crowd)
    engine = await connect(plan.url(name, durability="off"))
    try:
        claimer = await Claimer.join(engine)
        for begin in range(0, plan.crowd, BULK):
            count = min(BULK, plan.crowd - begin)
            await crowd(engine, claimer, count)
            advance(count)
    finally:
        await engine.close()
