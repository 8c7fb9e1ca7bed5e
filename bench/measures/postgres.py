"""The PostgreSQL engine beside its raw loop, on a private server with stock settings."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from bench.claimer import Claimer
from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.raw.postgres import Loop
from bench.rounds import Comparison, Question, Subject, Turn, Watch, compare
from penstock.engine.protocol import Engine
from penstock.engine.registry import connect
from penstock.model.job import NewJob
from tests.servers.postgres import PostgresServer

BATCHES = (10, 100)
WANTED = {10: None, 100: 0.45}
MERGED, MERGED_WANTED = 50, 0.4
BULK_WANTED = 0.6

Store = Callable[[Engine, Sequence[NewJob], int], Awaitable[None]]


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Enqueue, then claim and settle overlapping, then the same under a transaction that stays open."""
    server = await asyncio.to_thread(PostgresServer(durable=True).start)
    try:
        url = server.url()
        engine, raw = await connect(url), await Loop.open(url)
        try:
            return [
                *await _enqueues(plan, steps, engine, raw),
                *await _claims(plan, steps, engine, raw),
                *await _held_back(plan, steps, engine, url),
            ]
        finally:
            await raw.close()
            await engine.close()
    finally:
        server.close()


async def _enqueues(plan: Plan, steps: Steps, engine: Engine, raw: Loop) -> list[Comparison]:
    cases: list[tuple[str, Store, int, float | None]] = [
        ("one by one", _one_by_one, 1, None),
        (f"{MERGED} at once, merged", _at_once, MERGED, MERGED_WANTED),
        (f"bulk, {BULK:,} a call", _in_bulk, BULK, BULK_WANTED),
    ]
    advance = steps.begin("postgres enqueue", 2 * plan.rounds * len(cases))
    comparisons = []
    for case, store, size, wanted in cases:
        jobs = plan.jobs_at(10 if 1 < size < BULK else size)
        question = Question(measure="enqueue", case=case, against="raw", wanted=wanted)
        ours, theirs = _enqueue_turn(engine, store, size, jobs), _raw_enqueue_turn(raw, size, jobs)
        comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
    await (await Claimer.join(engine)).drain_overlapping(100)
    await raw.drain(100)
    return comparisons


async def _claims(plan: Plan, steps: Steps, engine: Engine, raw: Loop) -> list[Comparison]:
    advance = steps.begin("postgres claim", 2 * plan.rounds * len(BATCHES))
    claimer = await Claimer.join(engine)
    comparisons = []
    for batch in BATCHES:
        question = Question(
            measure="claim", case=f"claim and settle, batch {batch}", against="raw", wanted=WANTED[batch]
        )
        jobs = plan.jobs_at(batch)
        ours, theirs = _claim_turn(engine, claimer, batch, jobs), _raw_claim_turn(raw, batch, jobs)
        comparisons.append(await compare(question, ours, theirs, plan.rounds, advance))
    return comparisons


async def _held_back(plan: Plan, steps: Steps, engine: Engine, url: str) -> list[Comparison]:
    """The engine with and without a snapshot that keeps dead rows from being removed."""
    advance = steps.begin("postgres held back", 2 * plan.rounds)
    claimer = await Claimer.join(engine)
    reader: asyncpg.Connection[Any] = await asyncpg.connect(url)
    free = _claim_turn(engine, claimer, 100, plan.jobs)
    await free()

    async def held() -> Turn:
        async with reader.transaction(isolation="repeatable_read", readonly=True):
            await reader.fetch("SELECT count(*) FROM penstock.member")
            for _ in range(2):  # dead rows pile up
                await free()
            return await free()

    question = Question(measure="claim", case="with a snapshot held open", against="without it", wanted=0.7)
    try:
        return [await compare(question, held, free, plan.rounds, advance)]
    finally:
        await reader.close()


def _enqueue_turn(engine: Engine, store: Store, size: int, count: int) -> Subject:
    async def turn() -> Turn:
        jobs = new_jobs(count)
        with Watch() as watch:
            await store(engine, jobs, size)
        return watch.turn(count)

    return turn


def _raw_enqueue_turn(raw: Loop, size: int, count: int) -> Subject:
    async def turn() -> Turn:
        jobs = raw_jobs(count)
        with Watch() as watch:
            for chunk in chunks(jobs, size):
                await raw.enqueue(chunk)
        return watch.turn(count)

    return turn


def _claim_turn(engine: Engine, claimer: Claimer, batch: int, jobs: int) -> Subject:
    async def turn() -> Turn:
        await fill(engine, new_jobs(jobs))
        with Watch() as watch:
            settled = await claimer.drain_overlapping(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn


def _raw_claim_turn(raw: Loop, batch: int, jobs: int) -> Subject:
    async def turn() -> Turn:
        for chunk in chunks(raw_jobs(jobs), BULK):
            await raw.enqueue(chunk)
        with Watch() as watch:
            settled = await raw.drain(batch)
        if settled != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {settled} settled")
        return watch.turn(jobs)

    return turn


async def _one_by_one(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    for job in jobs:
        await engine.jobs.enqueue([job])


async def _at_once(engine: Engine, jobs: Sequence[NewJob], size: int) -> None:
    """So many callers, each of which goes on with its next job as soon as one is stored."""
    left = iter(jobs)

    async def caller() -> None:
        for job in left:
            await engine.jobs.enqueue([job])

    await asyncio.gather(*(caller() for _ in range(size)))


async def _in_bulk(engine: Engine, jobs: Sequence[NewJob], _: int) -> None:
    await fill(engine, jobs)
