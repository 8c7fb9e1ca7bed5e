"""Connections break, a server dies, answers are lost: calls say so, and go on by themselves."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import pytest
from msgspec.structs import replace

from tests.integration.any_server.fixtures import Sever
from tests.integration.outages import until_it_works
from tests.integration.supervisor.processes import until
from tests.servers.proxy import Proxy
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect as open_engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.event import ANY_TOPIC, Signal
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.member import MemberInfo
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    completed,
    created,
    ids_of,
    some_jobs,
    states_of,
)

PATIENCE_S = 20.0

Connect = Callable[..., Awaitable[Engine]]


class Server(Protocol):
    """One that keeps what it acknowledged."""

    def url(self) -> str: ...
    def kill(self) -> None: ...
    def start(self) -> object: ...


async def test_a_lost_connection_comes_back(engine: Engine, claimant: Claimant, sever: Sever) -> None:
    for _ in range(3):
        jobs = some_jobs(2)
        await until_it_works(partial(engine.jobs.enqueue, jobs, now=claimant.clock.now))
        await sever(1)
    assert [queue.ready for queue in await until_it_works(engine.inspect.counts)] == [6]


async def test_calls_in_a_storm(engine: Engine, claimant: Claimant, sever: Sever) -> None:
    """Producers and a worker repeat what failed; each job is done exactly once."""
    clock, jobs = claimant.clock, some_jobs(200)
    done = asyncio.Event()

    async def storm() -> None:
        while not done.is_set():
            await sever(0.3)
            await asyncio.sleep(0.02)

    async def work() -> list[bytes]:
        ended: list[bytes] = []
        while len(ended) < len(jobs):
            request = claimant.request(most=10)
            claim = await until_it_works(partial(engine.jobs.claim, request, now=clock.now))
            claimant.receive(claim, request.number)
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
async def test_a_server_killed_and_started_again(durable_server: Server, clock: Clock) -> None:
    """Nothing that was acknowledged is lost."""
    engine = await open_engine(durable_server.url())
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
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
        await asyncio.to_thread(durable_server.kill)
        with pytest.raises(EngineUnavailable):
            await engine.inspect.counts(now=clock.now)
        await asyncio.to_thread(durable_server.start)
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
    async with asyncio.timeout(PATIENCE_S):  # listeners are told to poll
        assert await subscription.next() == Signal(ANY_TOPIC)
    await engine.close()


@pytest.mark.row("A4")
async def test_a_reply_cut_after_the_step(
    connect: Connect, proxied_url: str, proxy: Proxy, clock: Clock
) -> None:
    engine, witness = await connect(proxied_url), await connect()
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()

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
    assert created(again) == [False] * 5
    request = claimant.request(most=3)
    claim = await cut(
        "claims",
        lambda: engine.jobs.claim(request, now=clock.now),
        lambda: engine.jobs.claim(idle, now=clock.now),
    )
    claimant.receive(claim, request.number)
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


async def test_a_heartbeat_is_given_up_in_time_for_another(
    connect: Connect, proxied_url: str, proxy: Proxy
) -> None:
    """Whatever a call may take: with half of the lease left the heartbeat goes by another connection."""
    engine = await connect(proxied_url)
    info = MemberInfo(id=new_id(), name="host:1", heartbeat=SECOND, lease=6 * SECOND)
    await engine.members.heartbeat(info)
    proxy.forget_all()
    begin = time.monotonic()
    with pytest.raises(EngineUnavailable, match="did not answer in 3 s"):
        await engine.members.heartbeat(info)
    assert not (await engine.members.heartbeat(info)).new
    assert time.monotonic() - begin < 6, "its lease"


async def test_a_connect_that_hangs_does_not_outlast_the_lease(
    connect: Connect, proxied_url: str, proxy: Proxy
) -> None:
    """A connect may take ten seconds; one that a heartbeat waits for takes no longer than the heartbeat
    may."""
    engine = await connect(proxied_url)
    info = MemberInfo(id=new_id(), name="host:1", heartbeat=SECOND // 2, lease=2 * SECOND)
    await engine.members.heartbeat(info)
    proxy.mute("replies")
    proxy.cut_all()  # and who connects again is not answered
    begun = time.monotonic()
    with pytest.raises(EngineUnavailable):
        await engine.members.heartbeat(info)
    assert time.monotonic() - begun < 5.0
    proxy.mute("replies", on=False)
    assert not (await until_it_works(partial(engine.members.heartbeat, info))).new


async def test_a_connect_that_takes_longer_than_a_heartbeat_may_is_there_for_a_later_one(
    connect: Connect, proxied_url: str, proxy: Proxy
) -> None:
    """As with a name server that does not answer: begun anew by every heartbeat it would never come to its
    end."""
    engine = await connect(proxied_url)
    info = MemberInfo(id=new_id(), name="host:1", heartbeat=SECOND // 2, lease=2 * SECOND)
    await engine.members.heartbeat(info)
    proxy.slow_connects(1.5)  # a heartbeat has one second
    proxy.cut_all()
    assert not (await until_it_works(partial(engine.members.heartbeat, info))).new
    proxy.cut_all()
    with pytest.raises(EngineUnavailable):
        await engine.members.heartbeat(info)
    begun = time.monotonic()
    await engine.close()  # and it does not wait for what goes on
    assert time.monotonic() - begun < 1.0
