"""The engine as a whole: what it says of itself, and that namespaces are shared and kept apart."""

import asyncio
from itertools import pairwise

import pytest

from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect as open_engine
from tidemill.model.errors import BadInput, BadUrl, EngineClosed
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, Connect, a_job, snapshot, some_jobs


async def test_it_has_a_name_for_people(engine: Engine, engine_url: str) -> None:
    assert engine.name.partition(":")[0] == engine_url.partition(":")[0]


async def test_its_clock_goes_forward(connect: Connect) -> None:
    one, other = await connect(), await connect()
    times = [await each.now() for each in (one, other, one, other)]
    assert all(later >= earlier - SECOND for earlier, later in pairwise(times))
    assert times[0] > 1_700_000_000 * SECOND


async def test_without_an_explicit_now_the_engines_clock_counts(engine: Engine) -> None:
    job = a_job(delay=60 * SECOND)
    before = await engine.now()
    await engine.jobs.enqueue([job])
    (record,) = await engine.inspect.get([job.id])
    after = await engine.now()
    assert record is not None
    assert before <= record.created_at <= after
    assert record.due_at == record.created_at + 60 * SECOND


@pytest.mark.row("F1")
async def test_clients_share_one_place(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    await one.jobs.enqueue(some_jobs(3), now=clock.now)
    assert await snapshot(one, clock) == await snapshot(other, clock)
    assert len((await snapshot(other, clock))["jobs"]) == 3


async def test_many_may_open_a_fresh_place_at_once(connect: Connect, clock: Clock) -> None:
    clients = await asyncio.gather(*(connect() for _ in range(5)))
    for client in clients:
        await client.jobs.enqueue([a_job()], now=clock.now)
    assert (await clients[0].inspect.counts(now=clock.now))[0].ready == 5


async def test_what_is_stored_survives_a_reopening(engine_url: str, connect: Connect, clock: Clock) -> None:
    engine = await connect()
    if engine.single_process:
        pytest.skip("this engine's state lives in the process")
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    fence = (await claimant.take_one()).fence
    before = await snapshot(engine, clock)
    await engine.close()
    again = await connect()
    assert await snapshot(again, clock) == before
    claimant.engine = again
    assert (await claimant.take_one()).fence > fence


async def test_calls_after_close_are_refused(connect: Connect, clock: Clock) -> None:
    engine = await connect()
    await engine.close()
    with pytest.raises(EngineClosed):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    with pytest.raises(EngineClosed):
        await engine.queues.list()


async def test_a_pending_subscription_ends_with_its_engine(connect: Connect) -> None:
    engine = await connect()
    subscription = await engine.signals.subscribe("silence")
    waiting = asyncio.ensure_future(subscription.next())
    await asyncio.sleep(0)
    await engine.close()
    done, _ = await asyncio.wait([waiting], timeout=5)
    assert done


async def test_an_unknown_option_in_the_url_is_refused(engine_url: str) -> None:
    mark = "&" if "?" in engine_url else "?"
    with pytest.raises(BadUrl, match="colour"):
        await open_engine(f"{engine_url}{mark}colour=blue")


async def test_a_bad_namespace_is_refused(engine_url: str) -> None:
    with pytest.raises(BadInput):
        await open_engine(engine_url, namespace="No Such Name")
