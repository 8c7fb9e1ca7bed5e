"""Connections break, servers die, answers are lost: calls say so, and go on by themselves."""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.engine.registry import connect as open_engine
from penstock.engines.postgres.engine import PostgresEngine
from penstock.engines.postgres.line import Line
from penstock.model.errors import EngineUnavailable
from penstock.model.event import ANY_TOPIC, Signal
from penstock.model.ids import new_id
from penstock.model.job import JobState
from penstock.model.member import MemberInfo
from penstock.model.run import Answer
from penstock.model.time import SECOND
from penstock.testing.contract.fixtures import Claimant, Clock, a_job, completed, ids_of, some_jobs, states_of
from tests.integration.postgres.conftest import Connect, Plain, Servers, behind
from tests.integration.supervisor.processes import until
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

PATIENCE_S = 20.0
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'penstock %'"


async def until_it_works(call: Any) -> Any:
    """Repeat a call as its callers do."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except EngineUnavailable:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)


async def test_a_lost_connection_comes_back(engine: PostgresEngine, claimant: Claimant, plain: Plain) -> None:
    other = await plain()
    for _ in range(3):
        jobs = some_jobs(2)
        await until_it_works(partial(engine.jobs.enqueue, jobs, now=claimant.clock.now))
        await other.fetch(f"SELECT pg_terminate_backend(pid) {OURS}")
    assert [queue.ready for queue in await until_it_works(engine.inspect.counts)] == [6]


async def test_calls_in_a_storm_of_terminations(
    engine: PostgresEngine, claimant: Claimant, plain: Plain
) -> None:
    """Producers and a worker repeat what failed; each job is done exactly once."""
    other, clock, jobs = await plain(), claimant.clock, some_jobs(200)
    done = asyncio.Event()

    async def storm() -> None:
        while not done.is_set():
            await other.fetch(f"SELECT pg_terminate_backend(pid) {OURS} AND random() < 0.3")
            await asyncio.sleep(0.02)

    async def work() -> list[bytes]:
        ended: list[bytes] = []
        while len(ended) < len(jobs):
            request = claimant.request(most=10)
            claim = await until_it_works(partial(engine.jobs.claim, request, now=clock.now))
            claimant.hear(claim, request.number)
            for run in claim.jobs:
                settled = await until_it_works(partial(engine.jobs.settle, [completed(run)], now=clock.now))
                assert settled.answers[0] in (Answer.APPLIED, Answer.ALREADY)
                ended.append(run.id)
        return ended

    async def produce() -> None:
        for at in range(0, len(jobs), 10):
            await until_it_works(partial(engine.jobs.enqueue, jobs[at : at + 10], now=clock.now))

    storming = asyncio.ensure_future(storm())
    async with asyncio.timeout(60):
        _, ended = await asyncio.gather(produce(), work())
    done.set()
    await storming
    assert sorted(ended) == sorted(ids_of(jobs))
    assert set(await until_it_works(lambda: states_of(engine, jobs))) == {JobState.COMPLETED}


@pytest.mark.row("A4")
async def test_a_server_killed_and_started_again(own_server: PostgresServer, clock: Clock) -> None:
    engine = await open_engine(own_server.url())
    claimant = Claimant(engine, clock)
    await claimant.beat()
    subscription = await engine.signals.subscribe("news")
    acknowledged: list[bytes] = []
    stop = asyncio.Event()

    async def produce() -> None:
        while not stop.is_set():
            jobs = some_jobs(3)
            await until_it_works(partial(engine.jobs.enqueue, jobs, now=clock.now))
            acknowledged.extend(ids_of(jobs))

    async def some_more() -> None:
        enough = len(acknowledged) + 300
        await until(lambda: len(acknowledged) >= enough)

    producing = [asyncio.ensure_future(produce()) for _ in range(3)]
    for _ in range(2):
        await some_more()
        await asyncio.to_thread(own_server.kill)
        with pytest.raises(EngineUnavailable):
            await engine.inspect.counts(now=clock.now)
        await asyncio.to_thread(own_server.start)
    await some_more()
    stop.set()
    await asyncio.gather(*producing)
    found = await until_it_works(lambda: engine.inspect.get(acknowledged[-1_000:]))
    assert all(job is not None for job in found)
    taken: list[bytes] = []
    while runs := await until_it_works(lambda: claimant.take(most=1_000)):
        taken += ids_of(runs)
    assert len(taken) == len(set(taken))
    assert set(taken) >= set(acknowledged)
    async with asyncio.timeout(PATIENCE_S):  # who listens is told to look
        assert await subscription.next() == Signal(ANY_TOPIC)
    await engine.close()


@pytest.mark.row("A4")
async def test_a_reply_cut_after_the_commit(connect: Connect, url: str, proxy: Proxy, clock: Clock) -> None:
    engine, witness = await connect(behind(url, proxy)), await connect()
    claimant = Claimant(engine, clock)
    await claimant.beat()

    async def cut(purpose: str, call: Any, warm: Any) -> Any:
        """Make a call whose answer is lost, and make it again. Another of its kind goes before: what the
        driver asks for the first time on a connection has replies of its own."""
        await until_it_works(warm)
        before = proxy.cuts
        proxy.cut_next_reply(purpose)
        with pytest.raises(EngineUnavailable):
            await call()
        assert proxy.cuts == before + 1
        return await until_it_works(call)

    jobs, idle = some_jobs(5), replace(claimant.request("none"), number=1_000)
    again = await cut(
        "enqueues",
        lambda: engine.jobs.enqueue(jobs, now=clock.now),
        lambda: engine.jobs.enqueue([a_job(queue="warm")], now=clock.now),
    )
    assert again == [False] * 5
    request = claimant.request(most=3)
    claim = await cut(
        "claims",
        lambda: engine.jobs.claim(request, now=clock.now),
        lambda: engine.jobs.claim(idle, now=clock.now),
    )
    claimant.hear(claim, request.number)
    assert ids_of(claim.jobs) == ids_of(jobs[:3])
    settled = await cut(
        "settles",
        lambda: engine.jobs.settle([completed(claim.jobs[0])], now=clock.now),
        lambda: engine.jobs.settle([], now=clock.now),
    )
    assert settled.answers == [Answer.ALREADY]
    released = await cut(
        "settles", lambda: claimant.release(claim.jobs[1]), lambda: engine.jobs.release([], now=clock.now)
    )
    assert released == [Answer.ALREADY]
    (counts,) = [each for each in await witness.inspect.counts(now=clock.now) if each.queue == "q"]
    assert (counts.completed, counts.running, counts.ready, counts.window.completed) == (1, 1, 3, 1)


@pytest.mark.parametrize("direction", ["requests", "replies"])
async def test_a_black_hole_is_given_up(connect: Connect, url: str, proxy: Proxy, direction: str) -> None:
    engine = await connect(behind(url, proxy) + "?call_timeout=1&connect_timeout=1")
    await until_it_works(lambda: engine.jobs.enqueue([a_job()]))
    proxy.mute(direction)
    begin = time.monotonic()
    with pytest.raises(EngineUnavailable, match="did not answer in 1 s"):
        await engine.jobs.enqueue([a_job()])
    with pytest.raises(EngineUnavailable, match="no answer in time"):
        await engine.jobs.enqueue([a_job()])
    assert time.monotonic() - begin < 10
    proxy.mute(direction, on=False)
    assert await until_it_works(lambda: engine.jobs.enqueue([a_job()])) == [True]


async def test_an_opening_into_a_black_hole_is_given_up(connect: Connect, url: str, proxy: Proxy) -> None:
    proxy.mute()
    with pytest.raises(EngineUnavailable, match="no answer in time"):
        await connect(behind(url, proxy) + "?connect_timeout=0.3")


@pytest.mark.row("B15")
async def test_connections_that_a_firewall_has_forgotten(
    connect: Connect, url: str, proxy: Proxy, clock: Clock
) -> None:
    """Nothing passes on the old ones, and nobody says so. New ones are in order."""
    engine = await connect(behind(url, proxy) + "?call_timeout=1")
    await until_it_works(lambda: engine.jobs.enqueue([a_job()], now=clock.now))
    await until_it_works(lambda: engine.inspect.counts(now=clock.now))
    proxy.forget_all()
    for call in (lambda: engine.jobs.enqueue([a_job()], now=clock.now), lambda: engine.inspect.counts()):
        with pytest.raises(EngineUnavailable, match="did not answer"):
            await call()
        await until_it_works(call)


async def test_a_beat_is_given_up_in_time_for_another(connect: Connect, url: str, proxy: Proxy) -> None:
    """Whatever a call may take: with half of the lease left the beat goes by another connection."""
    engine = await connect(behind(url, proxy))
    info = MemberInfo(id=new_id(), name="host:1", beat=SECOND, lease=6 * SECOND)
    await engine.members.beat(info)
    proxy.forget_all()
    begin = time.monotonic()
    with pytest.raises(EngineUnavailable, match="did not answer in 3 s"):
        await engine.members.beat(info)
    assert not (await engine.members.beat(info)).new
    assert time.monotonic() - begin < 6, "its lease"


@pytest.mark.row("B15")
async def test_a_server_that_drops_idle_connections(servers: Servers, connect: Connect, clock: Clock) -> None:
    """Calls after a rest are as good as others: no error, whatever kind they are."""
    server = servers(settings={"idle_session_timeout": "700ms"})
    engine = await connect(server.url())
    claimant = Claimant(engine, clock)

    async def a_round() -> None:
        await claimant.beat()
        await engine.jobs.enqueue(some_jobs(2), now=clock.now)
        first, second = await claimant.take(most=2)
        await claimant.complete(first)
        await claimant.release(second)
        await engine.inspect.counts(now=clock.now)
        await engine.queues.pause("q", now=clock.now)
        await engine.queues.resume("q", now=clock.now)

    lines = [*engine.store.__dict__.values()]
    await a_round()
    for _ in range(2):
        async with asyncio.timeout(PATIENCE_S):
            while not all(each.is_closed() for each in open_connections(lines)):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await a_round()
    assert "idle-session timeout" in server.log()


def open_connections(values: Iterable[object]) -> list[Any]:
    """Those of the lines among these, but for the one that looks about once a second."""
    lines = [each for each in values if isinstance(each, Line) and each._purpose != "beats"]
    return [each._connection for each in lines if each._connection is not None]
