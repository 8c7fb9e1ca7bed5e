"""How calls use their connections: how many of each, and how often something is sent."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.postgres.conftest import OURS, Connect, Plain, behind
from tests.integration.postgres.test_connections import PATIENCE_S
from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job as a_job_of_the_app
from tests.integration.supervisor.groups import enqueue, noted
from tests.producing import enqueue_at_once
from tests.servers.proxy import Proxy
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.pubsub import pubsub
from tidemill.model.errors import EngineClosed
from tidemill.model.event import EVENTS_TOPIC, Signal
from tidemill.model.jobs.job import JobState
from tidemill.model.schedules.schedule import Every, Schedule
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


async def sent(engine: PostgresEngine) -> None:
    """Wait until every signal has left."""
    while (sender := engine.store.pubsub._sender) is not None:
        await asyncio.wait([sender])


async def test_a_call_is_one_round_trip(
    connect: Connect, url: str, proxy: Proxy, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals are sent beside it, on a connection of their own."""
    engine = await connect(behind(url, proxy))
    monkeypatch.setattr(engine.late_commits, "begin", lambda: None)  # nothing is sent but for the calls
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()

    async def calls() -> dict[str, int]:
        """Each method, and how often something was sent for it."""
        counted: dict[str, int] = {}

        async def count(name: str, call: Any) -> Any:
            before = Counter(proxy.requests)
            answer = await call
            counted[name] = sum(
                times for purpose, times in (proxy.requests - before).items() if purpose != "signals"
            )
            return answer

        jobs = some_jobs(4)
        await count("enqueue", engine.jobs.enqueue(jobs, now=clock.now))
        taken = await count("claim", claimant.take(most=3))
        await count("settle", claimant.complete(taken[0]))
        request = claimant.request(most=1)
        settled = await count("settle with a claim", claimant.settle(completed(taken[1]), claim=request))
        await count("release", claimant.release(*settled.claim.jobs))
        await count("heartbeat", claimant.heartbeat())
        await count("cancel", engine.jobs.cancel([jobs[3].id], now=clock.now))
        await count("promote", engine.jobs.promote(now=clock.now))
        await count("get", engine.inspect.get(ids_of(jobs)))
        await claimant.complete(taken[2])
        return counted

    names = set(await calls())  # statements are prepared, connections opened
    assert await calls() == dict.fromkeys(names, 1)


async def test_a_connection_that_is_gone_without_a_word_is_noticed_by_the_kernel(
    engine: PostgresEngine,
) -> None:
    sock = engine.store.commands._connection._transport.get_extra_info("socket")  # type: ignore[union-attr]
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    idle, every, times = (
        sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
    )
    assert idle + every * times <= 30


async def test_a_cancelled_caller_leaves_the_connection_in_order(engine: PostgresEngine) -> None:
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


async def test_no_connection_is_left(connect: Connect, plain: Plain, clock: Clock) -> None:
    other = await plain()
    engine = await connect()
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await claimant.complete(*await claimant.take())
    await engine.signals.subscribe("news")
    await asyncio.gather(*(engine.inspect.counts(now=clock.now) for _ in range(10)))
    count = f"SELECT count(*) {OURS}"
    assert await other.fetchval(count) <= 9
    await engine.close()
    async with asyncio.timeout(PATIENCE_S):
        while await other.fetchval(count):  # noqa: ASYNC110  (the server tells nobody)
            await asyncio.sleep(0.01)


PURPOSES = {
    "claims": 1,
    "settles": 1,
    "enqueues": 1,
    "commands": 1,
    "heartbeats": 1,
    "reads": 2,
    "signals": 1,
    "listen": 1,
}
"""The most connections of one process, as docs/guide.md has them."""


async def test_a_worker_group_has_few_connections(
    url: str, plain: Plain, groups: Callable[[str], StartGroup], tmp_path: Path
) -> None:
    """A supervisor and two worker processes under load: each purpose once in each."""
    other = await plain()
    group = await groups(url)(processes=2, slots=20).ready(2)
    most: Counter[str] = Counter()
    jobs = [a_job_of_the_app("quick", str(tmp_path)) for _ in range(500)]
    reader = await open_engine(url)
    ids = await enqueue(reader, *jobs)
    await reader.close()

    async def count() -> None:
        rows = await other.fetch(f"SELECT split_part(application_name, ' ', 2), count(*) {OURS} GROUP BY 1")
        for purpose, times in rows:
            most[purpose] = max(most[purpose], times)

    while len(noted(tmp_path, "quick")) < len(ids):
        await count()
    assert set(most) <= set(PURPOSES)
    assert {purpose: times for purpose, times in most.items() if times > 3 * PURPOSES[purpose]} == {}
    print("connections of a supervisor and two processes:", dict(most))
    assert sum(most.values()) <= 3 * 9
    assert await group.stop() == 0


async def test_one_bad_call_among_merged_ones(engine: PostgresEngine, clock: Clock) -> None:
    """A value that only the server refuses: the others are stored all the same."""
    good, bad = some_jobs(5), a_job(on_dead="zero \0 byte")
    answers = await enqueue_at_once(engine, (*good[:3], bad, *good[3:]))
    assert [isinstance(answer, ValueError) for answer in answers] == [False] * 3 + [True] + [False] * 2
    assert await states_of(engine, [*good, bad]) == [JobState.READY] * 5 + [None]


@pytest.mark.row("C2")
async def test_events_reach_only_those_who_listen_to_them(connect: Connect) -> None:
    """And who listens to nothing else has one listening connection, which carries nothing else."""
    sender, worker, listener = await connect(), await connect(), await connect()
    payloads: dict[str, list[str]] = {}
    for name, engine in (("worker", worker), ("listener", listener)):
        payloads[name] = []
        for listening in (engine.store.pubsub._listener, engine.store.pubsub._loud_listener):
            listening._received = _noting(listening._received, payloads[name])
    news = await worker.signals.subscribe("news")
    events = await listener.signals.subscribe(EVENTS_TOPIC)
    texts = [f"{number} " + "x" * 7_000 for number in range(5)]
    for text in texts:
        await sender.signals.publish(EVENTS_TOPIC, text)
    await sender.signals.publish("news", "last")
    received = [await events.next(PATIENCE_S) for _ in texts]
    assert received == [Signal(EVENTS_TOPIC, text) for text in texts], "whole, and in order"
    assert await news.next(PATIENCE_S) == Signal("news", "last")
    assert payloads == {"worker": ['["news\\nlast"]'], "listener": texts}
    assert worker.store.pubsub._loud_listener._task is None
    assert listener.store.pubsub._listener._task is None


def _noting(receive: Callable[[str], None], payloads: list[str]) -> Callable[[str], None]:
    def noted_and_received(payload: str) -> None:
        payloads.append(payload)
        receive(payload)

    return noted_and_received


async def test_events_that_find_no_room_are_dropped(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub, "LOUD_LIMIT", 2)
    engine = await connect()
    for number in range(4):
        engine.store.pubsub.send_events(str(number))
    assert engine.store.pubsub._loud == ["0", "1"]


async def test_signals_are_merged(engine: PostgresEngine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await sent(engine)
    begin, before = time.monotonic(), engine.store.pubsub._connection.trips
    for _ in range(60):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    elapsed = time.monotonic() - begin
    assert engine.store.pubsub._connection.trips - before <= elapsed / 0.005 + 2


async def test_a_slow_chore_holds_up_no_firing(engine: PostgresEngine, clock: Clock) -> None:
    await engine.schedules.put([Schedule(name="s", timing=Every(seconds=60), job=a_job(), next_at=100)])
    async with engine.store.commands._turn:  # as while the answer to a chore is awaited
        async with asyncio.timeout(PATIENCE_S):
            assert await engine.schedules.fire(
                "s", tick=100, before=None, next_at=200, jobs=[a_job()], now=clock.now
            )
