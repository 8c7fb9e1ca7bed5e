"""Connections break, servers die, answers are lost: calls say so, and go on by themselves."""

import asyncio
import logging
import socket
import time
from functools import partial

import pytest

from tests.integration.outages import until_it_works
from tests.integration.redis.conftest import Command, Connect, behind
from tests.servers.proxy import Proxy
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engine.shared.calls.reconnecting import BACKOFF_S, backoff_s
from tidemill.engines.redis.db import schema
from tidemill.engines.redis.engine import RedisEngine
from tidemill.engines.redis.jobs import enqueue as enqueuing
from tidemill.engines.redis.pubsub import pubsub
from tidemill.model.errors import EngineClosed, EngineFull, EngineUnavailable
from tidemill.model.event import ANY_TOPIC, Signal
from tidemill.model.jobs.job import DropAnswer, JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    configure,
    created,
    ids_of,
    listed,
    snapshot,
    some_jobs,
)

PATIENCE_S = 20.0


@pytest.mark.parametrize("own_server", [{"appendfsync": "everysec"}], indirect=True)
async def test_what_is_left_after_a_kill_is_whole(own_server: RedisServer, clock: Clock) -> None:
    """With `everysec` the last second may be missing, but never a half of a call."""
    engine = await open_engine(own_server.url())
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    top = 0
    for _ in range(3):
        await until_it_works(lambda: engine.jobs.enqueue(some_jobs(50), now=clock.now))
        runs = await until_it_works(lambda: claimant.take(most=20))
        assert min(run.fence for run in runs) > top
        top = max(run.fence for run in runs)
        await until_it_works(lambda runs=runs: claimant.complete(*runs[:10]))
        await asyncio.to_thread(own_server.kill)
        await asyncio.to_thread(own_server.start)
        await until_it_works(claimant.heartbeat)
        (counts,) = await until_it_works(lambda: engine.inspect.counts(now=clock.now))
        shown = [job.state for job in await listed(engine)]
        assert [counts.in_state(state) for state in JobState] == [shown.count(state) for state in JobState]
        assert len(shown) % 50 == 0
    await engine.close()


async def test_a_black_hole_is_given_up(connect: Connect, url: str, proxy: Proxy) -> None:
    engine = await connect(behind(url, proxy) + "?call_timeout=0.3")
    await until_it_works(lambda: engine.jobs.enqueue([a_job()]))
    proxy.mute()
    begin = time.monotonic()
    with pytest.raises(EngineUnavailable, match="did not answer"):
        await engine.jobs.enqueue([a_job()])
    assert time.monotonic() - begin < 5
    proxy.mute(on=False)
    job = a_job()
    assert (await until_it_works(lambda: engine.jobs.enqueue([job])))[0].id == job.id


@pytest.mark.parametrize("flags", ["as the server reads them", "none"])
@pytest.mark.parametrize("own_server", [{"maxmemory-policy": "noeviction"}], indirect=True)
async def test_a_full_server_refuses_new_work_and_lets_the_rest_finish(
    own_server: RedisServer, clock: Clock, flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flags == "none":  # the scripts as they are for Redis 6.2, whichever server this is
        monkeypatch.setattr(schema, "FLAGS_SINCE", (99, 0))
    engine = await open_engine(own_server.url())
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    done, jobs = a_job(), some_jobs(3)
    await engine.jobs.enqueue([done, *jobs], now=clock.now)
    await claimant.complete(await claimant.take_one())
    first = await claimant.take_one()
    own_server.command("CONFIG", "SET", "maxmemory", "1mb")
    before = await snapshot(engine, clock)
    for refused in (
        partial(engine.jobs.enqueue, some_jobs(3), now=clock.now),
        partial(engine.jobs.replay, [done.id], token=bytes(16), now=clock.now),
    ):
        with pytest.raises(EngineFull):
            await refused()
    assert await snapshot(engine, clock) == before
    await configure(engine, "q", QueueOptions(keep_completed=Keep(age=60.0)), now=clock.now)
    await engine.queues.pause("q", by="ann", now=clock.now)  # operators can act
    await engine.queues.resume("q", now=clock.now)
    await claimant.heartbeat()  # what runs goes on, what waits is worked off
    watch = partial(engine.jobs.watch, [first.id], waiter="me", ttl=SECOND, now=clock.now)
    assert [job and job.state for job in await watch()] == [JobState.RUNNING]
    assert await claimant.complete(first) == [Answer.APPLIED]
    assert [job and job.state for job in await watch()] == [JobState.COMPLETED], "a result can be fetched"
    assert await claimant.complete(*await claimant.take()) == [Answer.APPLIED] * 2
    assert await engine.jobs.drop(ids_of(jobs), now=clock.now) == [DropAnswer.DROPPED] * 3
    own_server.command("CONFIG", "SET", "maxmemory", "0")
    assert created(await engine.jobs.enqueue(some_jobs(2), now=clock.now)) == [True, True]
    assert [counts.ready for counts in await engine.inspect.counts(now=clock.now)] == [2]
    await engine.close()


async def test_listeners_come_back(
    engine: RedisEngine, command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidemill.engine")
    subscription = await engine.signals.subscribe("news")
    command("CLIENT", "KILL", "TYPE", "pubsub")
    async with asyncio.timeout(PATIENCE_S):  # what came meanwhile is lost: poll
        assert await subscription.next() == Signal(ANY_TOPIC)
        while True:
            await engine.signals.publish("news", "again")
            signal = await subscription.next(0.2)
            if signal == Signal("news", "again"):
                break
    said = [(record.levelname, record.message.split(":")[0]) for record in caplog.records]
    assert said[0][0] == "WARNING"
    assert "signals are lost until we listen again" in said[0][1]
    assert said[-1] == ("INFO", f"listening to {engine.name} again".split(":")[0])


async def test_a_cancelled_caller_leaves_the_connection_in_order(engine: RedisEngine) -> None:
    calls = [asyncio.ensure_future(engine.jobs.promote()) for _ in range(20)]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert created(await engine.jobs.enqueue([a_job()])) == [True]
    assert (await engine.jobs.promote()).jobs == 0


async def test_close_finishes_the_calls_already_made(connect: Connect, clock: Clock) -> None:
    engine, other = await connect(), await connect()
    jobs = some_jobs(50)
    calls = [asyncio.ensure_future(engine.jobs.enqueue([job], now=clock.now)) for job in jobs]
    await asyncio.sleep(0)
    await engine.close()
    assert [created(answer) for answer in await asyncio.gather(*calls)] == [[True]] * 50
    with pytest.raises(EngineClosed):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    assert (await other.inspect.counts(now=clock.now))[0].ready == 50


async def test_no_connection_is_left(own_server: RedisServer, clock: Clock) -> None:
    def ours() -> int:
        return own_server.command("CLIENT", "LIST").count(b"name=tidemill-")

    engine = await open_engine(own_server.url())
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await claimant.complete(*await claimant.take())
    await engine.signals.subscribe("news")
    await asyncio.gather(*(engine.inspect.counts(now=clock.now) for _ in range(10)))
    assert 5 <= ours() <= 7
    await engine.close()
    async with asyncio.timeout(PATIENCE_S):
        while ours():  # noqa: ASYNC110  (the server tells nobody)
            await asyncio.sleep(0.01)


async def test_an_outage_may_last(own_server: RedisServer, clock: Clock) -> None:
    """After thousands of tries the next one is made as any other."""
    engine = await open_engine(own_server.url())
    assert isinstance(engine, RedisEngine)
    inbox = await engine.signals.subscribe("news")
    own_server.kill()
    engine.store.enqueues._failures = 5_000
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await engine.jobs.enqueue([a_job()], now=clock.now)
        engine.store.enqueues._not_before = 0
    own_server.start()
    await until_it_works(partial(engine.jobs.enqueue, [a_job()], now=clock.now))
    assert await inbox.next(PATIENCE_S) == Signal(ANY_TOPIC)
    await engine.close()
    assert all(0 < backoff_s(failures) <= BACKOFF_S[1] for failures in (0, 1, 1_024, 10**9))


async def test_calls_that_came_meanwhile_do_not_share_a_fate(engine: RedisEngine, clock: Clock) -> None:
    """Whatever ends the call before theirs, even what nobody foresaw."""
    parent = a_job()
    await engine.jobs.enqueue([parent], now=clock.now)
    bad = a_job(after=(parent.id,), retry=object())  # has no form, and no check stands before this
    calls = [enqueuing.enqueue(engine.store, [job], None, clock.now) for job in (a_job(), bad, a_job())]
    async with asyncio.timeout(PATIENCE_S):
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(answer, Exception) for answer in answers] == [False, True, False]


async def test_the_kernel_watches_over_idle_connections(engine: RedisEngine) -> None:
    await engine.inspect.counts()
    connection = engine.store.reads._connection
    assert connection is not None
    assert connection._writer is not None
    sock = connection._writer.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


async def test_a_listener_that_was_forgotten_connects_again(
    connect: Connect, url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet connection is asked for a sign of life; one that gives none is replaced."""
    monkeypatch.setattr(pubsub, "SILENCE_S", 0.2)
    engine = await connect(behind(url, proxy))
    inbox = await engine.signals.subscribe("news")
    begin = proxy.requests["listen"]
    async with asyncio.timeout(PATIENCE_S):
        while proxy.requests["listen"] < begin + 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await engine.signals.publish("news", "one")
    assert await inbox.next(PATIENCE_S) == Signal("news", "one"), "it was never replaced"
    proxy.forget_all()
    assert await inbox.next(PATIENCE_S) == Signal(ANY_TOPIC)


async def test_a_slow_chore_holds_up_no_firing(engine: RedisEngine, clock: Clock) -> None:
    await engine.schedules.put([Schedule(name="s", timing=Every(seconds=60), job=a_job(), next_at=100)])
    async with engine.store.commands._turn:  # as while the answer to a chore is awaited
        async with asyncio.timeout(PATIENCE_S):
            assert await engine.schedules.fire(
                "s", tick=100, before=None, next_at=200, jobs=[a_job()], now=clock.now
            )
