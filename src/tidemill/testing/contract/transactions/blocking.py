"""`blocking`: the enqueue of threads that wait anyway, where the engine has it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemill.engine.protocol import BlockingFacet, Engine
from tidemill.model.errors import BadInput, EngineClosed, UnknownParent
from tidemill.model.event import ready_topic
from tidemill.model.jobs.job import JobState
from tidemill.testing.contract.fixtures import (
    Clock,
    Connect,
    a_claimant,
    a_job,
    created,
    ids_of,
    some_jobs,
    states_of,
)


@pytest.fixture
def blocking(engine: Engine) -> BlockingFacet:
    """The facet, where the engine has it."""
    if engine.blocking is None:
        pytest.skip("threads go through this engine's loop")
    return engine.blocking


@pytest.mark.row("A1")
async def test_jobs_are_stored_in_their_order(engine: Engine, blocking: BlockingFacet, clock: Clock) -> None:
    jobs = some_jobs(3)
    assert created(await asyncio.to_thread(blocking.enqueue, jobs, now=clock.now)) == [True] * 3
    assert await states_of(engine, jobs) == [JobState.READY] * 3
    worker = await a_claimant(engine, clock)
    assert ids_of(await worker.take()) == ids_of(jobs)


async def test_a_repeated_call_finds_its_jobs(engine: Engine, blocking: BlockingFacet, clock: Clock) -> None:
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs[:1], now=clock.now)
    assert created(await asyncio.to_thread(blocking.enqueue, jobs, now=clock.now)) == [False, True]
    assert created(await asyncio.to_thread(blocking.enqueue, jobs, now=clock.now)) == [False, False]


async def test_bad_input_is_refused_and_changes_nothing(
    engine: Engine, blocking: BlockingFacet, clock: Clock
) -> None:
    good, bad, orphan = a_job(), a_job(priority=11), a_job(after=(a_job().id,))
    with pytest.raises(BadInput):
        await asyncio.to_thread(blocking.enqueue, [good, bad], now=clock.now)
    with pytest.raises(UnknownParent):
        await asyncio.to_thread(blocking.enqueue, [good, orphan], now=clock.now)
    assert await states_of(engine, [good]) == [None]


@pytest.mark.row("A4")
async def test_threads_and_tasks_at_once_lose_nothing(
    engine: Engine, blocking: BlockingFacet, connect: Connect, clock: Clock
) -> None:
    """Every thread keeps its own order; one bad call harms nobody else."""
    lines = [some_jobs(20) for _ in range(6)]
    refused = 0

    def produce(line: int) -> None:
        for job in lines[line]:
            assert created(blocking.enqueue([job], now=clock.now)) == [True]

    def blunder() -> None:
        nonlocal refused
        for _ in range(20):
            with pytest.raises(UnknownParent):
                blocking.enqueue([a_job(after=(a_job().id,))], now=clock.now)
            refused += 1

    async def produce_on_the_loop(line: int) -> None:
        for job in lines[line]:
            assert created(await engine.jobs.enqueue([job], now=clock.now)) == [True]

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(5) as pool:
        threads = [loop.run_in_executor(pool, produce, n) for n in range(4)]
        await asyncio.gather(
            *threads, loop.run_in_executor(pool, blunder), produce_on_the_loop(4), produce_on_the_loop(5)
        )
    assert refused == 20
    taken = ids_of(await (await a_claimant(await connect(), clock)).take(most=200))
    assert len(taken) == 120
    for line in lines:
        own = set(ids_of(line))
        assert [job_id for job_id in taken if job_id in own] == ids_of(line)


async def test_those_who_wait_for_jobs_are_told(
    engine: Engine, blocking: BlockingFacet, clock: Clock
) -> None:
    """Of a burst the first and the last: after the last signal everything is there."""
    inbox = await engine.signals.subscribe(ready_topic("q"))
    jobs = some_jobs(30)

    def burst() -> None:
        for job in jobs:
            blocking.enqueue([job], now=clock.now)

    await asyncio.to_thread(burst)
    worker = await a_claimant(engine, clock)
    taken: list[bytes] = []
    while len(taken) < len(jobs):
        assert await inbox.next(timeout=10) is not None
        taken += ids_of(await worker.take(most=100))
    await inbox.close()


async def test_closing_finishes_what_was_asked_before(
    engine: Engine, blocking: BlockingFacet, connect: Connect, clock: Clock
) -> None:
    observer = await connect()
    await observer.signals.subscribe(ready_topic("q"))  # so that signals of the burst are under way
    burst, late = some_jobs(20), some_jobs(20)
    for job in burst:
        await asyncio.to_thread(blocking.enqueue, [job], now=clock.now)
    calls = [asyncio.create_task(engine.jobs.enqueue([job], now=clock.now)) for job in late]
    await asyncio.sleep(0)  # they are made
    await engine.close()
    assert [created(answer) for answer in await asyncio.gather(*calls)] == [[True]] * 20
    assert await states_of(observer, [*burst, *late]) == [JobState.READY] * 40


async def test_a_closed_engine_says_so(engine: Engine, blocking: BlockingFacet, clock: Clock) -> None:
    await engine.close()
    with pytest.raises(EngineClosed):
        await asyncio.to_thread(blocking.enqueue, some_jobs(1), now=clock.now)
