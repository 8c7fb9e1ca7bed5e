"""What an enqueue costs: one by one, many at once (merged by the producer, as in an app), and in bulk."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from bench.stores import Raw
from tidemill.app.enqueueing.producer import Producer
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.jobs.job import NewJob

MERGED = (50, 200)

Store = Callable[[Engine, Sequence[NewJob], int], Awaitable[None]]


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Each case against the raw loop with as many jobs in a transaction as the case has at once."""
    cases: list[tuple[str, Store, int]] = [
        ("one by one", _one_by_one, 1),
        *((f"{size} at once", _at_once, size) for size in MERGED),
        ("bulk", _in_bulk, BULK),
    ]
    advance = steps.begin("enqueue", 2 * plan.rounds * len(cases))
    engine, raw = await connect(plan.url("enqueue")), await plan.store.raw("enqueue")
    try:
        await fill(engine, new_jobs(plan.warm_up))
        await raw_inserts(plan, raw, BULK, plan.warm_up)()
        comparisons = []
        for case, store, size in cases:
            jobs = plan.jobs_at(10 if 1 < size < BULK else size)
            wanted = plan.store.wanted.get(case)
            question = Question(measure="enqueue", case=case, against="raw", wanted=wanted)
            ours, theirs = _engine_turn(plan, engine, store, size, jobs), raw_inserts(plan, raw, size, jobs)
            comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
        return comparisons
    finally:
        await raw.close()
        await engine.close()


def _engine_turn(plan: Plan, engine: Engine, store: Store, size: int, count: int) -> Subject:
    async def turn() -> Turn:
        jobs = new_jobs(count)
        with Watch(plan.store.cpu_s) as watch:
            await store(engine, jobs, size)
        return watch.turn(count)

    return turn


def raw_inserts(plan: Plan, raw: Raw, size: int, count: int) -> Subject:
    """The raw loop's enqueue, so many in a transaction."""

    async def turn() -> Turn:
        jobs = raw_jobs(count)
        with Watch(plan.store.cpu_s) as watch:
            for chunk in chunks(jobs, size):
                await raw.enqueue(chunk)
        return watch.turn(count)

    return turn


async def _one_by_one(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    for job in jobs:
        await engine.jobs.enqueue([job])


async def _at_once(engine: Engine, jobs: Sequence[NewJob], size: int) -> None:
    """So many callers, each of which goes on with its next job as soon as one is stored."""
    left = iter(jobs)

    async def opened() -> Engine:
        return engine

    producer = Producer(opened, asyncio.get_running_loop())

    async def caller() -> None:
        for job in left:
            await producer.hand_over([job])

    await asyncio.gather(*(caller() for _ in range(size)))


async def _in_bulk(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    await fill(engine, jobs)
