"""What an enqueue costs: one by one, many at once (which the engine merges), and in bulk."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.raw.sqlite import Loop
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from penstock.engine.protocol import Engine
from penstock.engine.registry import connect
from penstock.model.job import NewJob

MERGED = (50, 200)
BULK_WANTED = 0.6

Store = Callable[[Engine, Sequence[NewJob], int], Awaitable[None]]


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Each case against the raw loop with as many jobs in a transaction as the case has at once."""
    cases: list[tuple[str, Store, int, float | None]] = [
        ("one by one", _one_by_one, 1, None),
        *((f"{size} at once, merged", _at_once, size, None) for size in MERGED),
        (f"bulk, {BULK:,} a call", _in_bulk, BULK, BULK_WANTED),
    ]
    advance = steps.begin("enqueue", 2 * plan.rounds * len(cases))
    engine = await connect(plan.url("enqueue"))
    raw = Loop(plan.raw_path("enqueue"), plan.durability)
    try:
        await fill(engine, new_jobs(plan.warm_up))
        for chunk in chunks(raw_jobs(plan.warm_up), BULK):
            raw.enqueue(chunk)
        comparisons = []
        for case, store, size, wanted in cases:
            jobs = plan.jobs_at(10 if 1 < size < BULK else size)
            question = Question(measure="enqueue", case=case, against="raw", wanted=wanted)
            ours, theirs = _engine_turn(engine, store, size, jobs), _raw_turn(raw, size, jobs)
            comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
        return comparisons
    finally:
        raw.close()
        await engine.close()


def _engine_turn(engine: Engine, store: Store, size: int, count: int) -> Subject:
    async def turn() -> Turn:
        jobs = new_jobs(count)
        with Watch() as watch:
            await store(engine, jobs, size)
        return watch.turn(count)

    return turn


def _raw_turn(raw: Loop, size: int, count: int) -> Subject:
    async def turn() -> Turn:
        jobs = raw_jobs(count)
        with Watch() as watch:
            for chunk in chunks(jobs, size):
                raw.enqueue(chunk)
        return watch.turn(count)

    return turn


async def _one_by_one(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    for job in jobs:
        await engine.jobs.enqueue([job])


async def _at_once(engine: Engine, jobs: Sequence[NewJob], size: int) -> None:
    for chunk in chunks(jobs, size):
        await asyncio.gather(*(engine.jobs.enqueue([job]) for job in chunk))


async def _in_bulk(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    await fill(engine, jobs)
