"""Several clients at once: nothing twice, nothing lost, nobody overtaken."""

import asyncio
from collections import Counter

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    completed,
    configure,
    created,
    ids_of,
    some_jobs,
    states_of,
)


async def workers(connect: Connect, clock: Clock, count: int = 4) -> list[Claimant]:
    return [await a_claimant(await connect(), clock, name=f"w{n}") for n in range(count)]


async def work(worker: Claimant, *, most: int = 7, queue: str = "q") -> list[bytes]:
    """Claim and complete until nothing is left; what was run, in order."""
    ran: list[bytes] = []
    runs = await worker.take(queue, most=most)
    while runs:
        ran += ids_of(runs)
        assert await worker.complete(*runs) == [Answer.APPLIED] * len(runs)
        runs = await worker.take(queue, most=most)
    return ran


@pytest.mark.row("A4")
async def test_no_job_is_taken_twice_and_none_is_lost(connect: Connect, clock: Clock) -> None:
    claimants = await workers(connect, clock)
    jobs = some_jobs(500)
    await claimants[0].engine.jobs.enqueue(jobs, now=clock.now)
    parts = await asyncio.gather(*map(work, claimants))
    assert sorted(job_id for part in parts for job_id in part) == sorted(ids_of(jobs))
    assert set(await states_of(claimants[0].engine, jobs)) == {JobState.COMPLETED}


@pytest.mark.row("A1")
async def test_each_worker_sees_the_lane_in_order(connect: Connect, clock: Clock) -> None:
    claimants = await workers(connect, clock)
    jobs = some_jobs(300)
    await claimants[0].engine.jobs.enqueue(jobs, now=clock.now)
    position = {job.id: n for n, job in enumerate(jobs)}
    for part in await asyncio.gather(*map(work, claimants)):
        positions = [position[job_id] for job_id in part]
        assert positions == sorted(positions)


async def test_settle_with_claim_from_many_clients(connect: Connect, clock: Clock) -> None:
    claimants = await workers(connect, clock)
    jobs = some_jobs(300)
    await claimants[0].engine.jobs.enqueue(jobs, now=clock.now)

    async def run_through(worker: Claimant) -> list[bytes]:
        ran: list[bytes] = []
        runs = await worker.take(most=5)
        while runs:
            ran += ids_of(runs)
            settled = await worker.settle(*map(completed, runs), claim=worker.request(most=5))
            assert settled.claim is not None
            runs = settled.claim.jobs
        return ran

    parts = await asyncio.gather(*map(run_through, claimants))
    assert sorted(job_id for part in parts for job_id in part) == sorted(ids_of(jobs))


@pytest.mark.row("C1")
async def test_one_id_from_many_producers_is_one_job(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(4)]
    for _ in range(10):
        job_id = new_id()
        answers = await asyncio.gather(
            *(client.jobs.enqueue([a_job(id=job_id)], now=clock.now) for client in clients for _ in range(3))
        )
        assert sorted(map(created, answers)) == [[False]] * 11 + [[True]]
    assert (await clients[0].inspect.counts(now=clock.now))[0].ready == 10


@pytest.mark.row("A1")
async def test_one_producers_jobs_never_overtake_each_other(connect: Connect, clock: Clock) -> None:
    producers = [await connect() for _ in range(3)]
    made: dict[int, list[bytes]] = {n: [] for n in range(3)}

    async def produce(number: int, engine: Engine) -> None:
        for turn in range(25):
            jobs = some_jobs(1 + turn % 3, key=str(number))
            await engine.jobs.enqueue(jobs, now=clock.now)
            made[number] += ids_of(jobs)

    await asyncio.gather(*(produce(n, engine) for n, engine in enumerate(producers)))
    claimant = await a_claimant(producers[0], clock)
    taken = await claimant.take(most=1_000)
    for number, ids in made.items():
        assert [job.id for job in taken if job.key == str(number)] == ids


@pytest.mark.row("A1")
async def test_concurrent_calls_of_one_client_keep_the_order_of_their_return(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(200)
    returned: list[bytes] = []

    async def enqueue(job_id: bytes) -> None:
        await engine.jobs.enqueue([a_job(id=job_id)], now=clock.now)
        returned.append(job_id)

    for at in range(0, 200, 10):
        before = len(returned)
        await asyncio.gather(*map(enqueue, ids_of(jobs[at : at + 10])))
        assert sorted(returned[before:]) == sorted(ids_of(jobs[at : at + 10]))
    taken = ids_of(await claimant.take(most=200))
    chunks = [set(taken[at : at + 10]) for at in range(0, 200, 10)]
    assert chunks == [set(ids_of(jobs[at : at + 10])) for at in range(0, 200, 10)]


@pytest.mark.row("E1")
async def test_a_limit_holds_while_many_claim(connect: Connect, clock: Clock) -> None:
    claimants = await workers(connect, clock)
    engine = claimants[0].engine
    options = QueueOptions(concurrency=10, per_key=Limit(concurrency=3))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in "abcdef" * 20], now=clock.now)
    for _ in range(5):
        taken = await asyncio.gather(*(worker.take(most=6) for worker in claimants))
        runs = [(worker, run) for worker, part in zip(claimants, taken, strict=True) for run in part]
        assert len(runs) == 10
        assert max(Counter(run.key for _, run in runs).values()) <= 3
        for worker, run in runs:
            await worker.complete(run)


async def test_settles_of_one_run_apply_once(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(4)]
    claimant = await a_claimant(clients[0], clock)
    await clients[0].jobs.enqueue(some_jobs(20), now=clock.now)
    for run in await claimant.take():
        settled = await asyncio.gather(
            *(client.jobs.settle([completed(run)], now=clock.now) for client in clients)
        )
        answers = sorted(answer.value for each in settled for answer in each.answers)
        assert answers == ["already", "already", "already", "applied"]
    assert (await clients[0].inspect.counts(now=clock.now))[0].window.completed == 20


async def test_cancel_races_with_claim(connect: Connect, clock: Clock) -> None:
    """Either it never started, or its holder is told; never both, never neither."""
    operator = await connect()
    claimant = await a_claimant(await connect(), clock)
    jobs = some_jobs(60)
    await operator.jobs.enqueue(jobs, now=clock.now)
    taking = asyncio.ensure_future(claimant.take(most=30))
    answers = await asyncio.gather(*(operator.jobs.cancel([job.id], now=clock.now) for job in jobs))
    taken = await taking
    asked = {job.id for job, (answer,) in zip(jobs, answers, strict=True) if answer.value == "asked"}
    assert asked <= set(ids_of(taken))
    states = dict(zip(ids_of(jobs), await states_of(operator, jobs), strict=True))
    for job_id, state in states.items():
        assert state is (JobState.RUNNING if job_id in ids_of(taken) else JobState.CANCELLED)
    stopping = {stop.id for stop in (await claimant.heartbeat()).stop_requests}
    assert stopping == asked


@pytest.mark.row("E1")
@pytest.mark.parametrize("change", ["has a child", "is cancelled"])
async def test_a_job_that_changes_while_it_is_claimed_leaves_no_gate_closed(
    connect: Connect, clock: Clock, change: str
) -> None:
    """A claim that chose it and then could not take it holds no permit: the next of its key can start."""
    operator = await connect()
    claimant = await a_claimant(await connect(), clock)
    await configure(operator, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    keys = [f"key{number}" for number in range(40)]
    for _ in range(10):
        jobs = [a_job(key=key) for key in keys]
        nexts = [a_job(key=key) for key in keys]
        await operator.jobs.enqueue([*jobs, *nexts], now=clock.now)
        taking = asyncio.ensure_future(work(claimant, most=40))
        for job in jobs:
            if change == "is cancelled":
                await operator.jobs.cancel([job.id], now=clock.now)
            else:
                child = a_job(queue="other", after=(job.id,), parent_died="run")
                await operator.jobs.enqueue([child], now=clock.now)
        await taking
        await work(claimant, most=40)
        assert JobState.READY not in await states_of(operator, [*jobs, *nexts])


async def test_everything_at_once_adds_up(connect: Connect, clock: Clock) -> None:
    """Producers, workers that fail and release, promoters and readers: each job ends exactly once."""
    claimants = await workers(connect, clock, 3)
    producer = await connect()
    jobs = [a_job(delay=n % 3, priority=n % 2 * 5) for n in range(240)]
    clock.now += 5
    ends: Counter[bytes] = Counter()
    done = asyncio.Event()

    async def produce() -> None:
        for at in range(0, 240, 12):
            await producer.jobs.enqueue(jobs[at : at + 12], now=clock.now - 5)
            await producer.jobs.promote(now=clock.now)
        done.set()

    async def labour(worker: Claimant) -> None:
        while True:
            last_round = done.is_set()
            runs = await worker.take(most=5)
            for number, run in enumerate(runs):
                if number % 5 == 3:
                    await worker.release(run)
                elif number % 5 == 4 and run.attempt < 3:
                    await worker.fail(run, retry_in=0)
                else:
                    await worker.complete(run)
                    ends[run.id] += 1
            if last_round and not runs:
                return

    async def read() -> None:
        while not done.is_set():
            page = (await producer.inspect.list(JobFilter(), limit=1_000)).jobs  # all of one moment
            assert len(set(ids_of(page))) == len(page)
            counts = await producer.inspect.counts(now=clock.now)
            assert sum(each.in_state(state) for each in counts for state in JobState) >= len(page)

    await asyncio.gather(produce(), read(), *map(labour, claimants))
    await asyncio.gather(*map(labour, claimants))
    assert ends == Counter(ids_of(jobs))
    (total,) = await producer.inspect.counts(now=clock.now)
    assert (total.completed, total.window.completed) == (240, 240)
