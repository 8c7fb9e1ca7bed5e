"""`durability=replicated`: what was acknowledged is on a replica too, or else the caller is told."""

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

import pytest

from tests.integration.outages import until_it_works
from tests.integration.redis.conftest import Connect, Servers, behind
from tests.integration.redis.test_scripts import OPERATIONS
from tests.producing import enqueue_at_once
from tests.servers.proxy import Proxy
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.redis.db.copies import NOT_WAITED_FOR
from tidemill.engines.redis.db.scripts import script
from tidemill.engines.redis.engine import RedisEngine
from tidemill.model.errors import BadUrl, EngineFull, EngineUnavailable
from tidemill.model.jobs.job import JobState, ReplayAnswer, Stored
from tidemill.model.jobs.run import Answer, LogLine, Note
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, configure, created, ids_of, some_jobs

pytestmark = pytest.mark.row("A4")


class Two(NamedTuple):
    """A primary, and a replica that follows it."""

    primary: RedisServer
    replica: RedisServer

    def url(self, options: str = "replica_timeout=0.3") -> str:
        return f"{self.primary.url()}?durability=replicated&{options}"


@pytest.fixture
def two(servers: Servers) -> Two:
    pair = Two(servers(), servers())
    pair.primary.copied_by(pair.replica)
    return pair


@pytest.fixture
async def engine(two: Two, connect: Connect) -> AsyncIterator[RedisEngine]:
    opened = await connect(two.url("replica_timeout=1"))
    yield opened
    two.replica.resume()


async def test_what_was_acknowledged_is_on_the_replica(two: Two, engine: RedisEngine, clock: Clock) -> None:
    """However suddenly the primary ends."""
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    jobs = some_jobs(200)
    for at in range(0, len(jobs), 20):
        assert created(await engine.jobs.enqueue(jobs[at : at + 20], now=clock.now)) == [True] * 20
    done = await claimant.take(most=50)
    assert set(await claimant.complete(*done)) == {Answer.APPLIED}
    two.primary.kill()
    two.replica.command("REPLICAOF", "NO", "ONE")
    other = await open_engine(two.replica.url())
    found = await other.inspect.get(ids_of(jobs))
    assert all(job is not None for job in found)
    assert [job.id for job in found if job and job.state is JobState.COMPLETED] == ids_of(done)
    await other.close()


async def test_a_replica_that_stopped_is_told_and_its_return_is_found(
    two: Two, engine: RedisEngine, clock: Clock
) -> None:
    jobs = some_jobs(3)
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    first, second = await claimant.take()
    two.replica.pause()
    for call in (
        partial(engine.jobs.enqueue, jobs, now=clock.now),
        partial(claimant.complete, first),
        partial(claimant.release, second),
        partial(configure, engine, "q", QueueOptions(concurrency=5), now=clock.now),
        partial(engine.leases.acquire, "l", holder="me", ttl=SECOND, now=clock.now),
    ):
        begin = time.monotonic()
        with pytest.raises(EngineUnavailable, match=r"0 instead of 1 within 1 s: repeat the call"):
            await call()
        assert time.monotonic() - begin < 5
    begin = time.monotonic()
    assert (await claimant.heartbeat()).lost == [first.fence, second.fence], "both were applied"
    assert time.monotonic() - begin < 1, "heartbeats do not wait, nor behind somebody who does"
    two.replica.resume()
    assert created(await until_it_works(lambda: engine.jobs.enqueue(jobs, now=clock.now))) == [False] * 3
    assert await until_it_works(lambda: claimant.complete(first)) == [Answer.ALREADY]
    assert await until_it_works(lambda: claimant.release(second)) == [Answer.ALREADY]
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.ready, counts.completed, counts.running) == (4, 1, 0)


async def test_a_repeat_on_a_new_connection_waits_for_the_first(
    two: Two, connect: Connect, proxy: Proxy, clock: Clock
) -> None:
    """It writes nothing itself, and knows nothing of what the broken one wrote."""
    proxy.retarget(two.primary.port)
    engine = await connect(behind(two.url(), proxy))
    job = a_job()
    await until_it_works(lambda: engine.jobs.enqueue([a_job()], now=clock.now))
    two.replica.pause()
    proxy.cut_next_reply("enqueues")
    for _ in range(3):
        with pytest.raises(EngineUnavailable):
            await engine.jobs.enqueue([job], now=clock.now)
        proxy.cut_all()
    assert proxy.cuts == 1
    two.replica.resume()
    assert created(await until_it_works(lambda: engine.jobs.enqueue([job], now=clock.now))) == [False]


async def test_who_finds_what_another_has_written_waits_for_it_too(
    two: Two, engine: RedisEngine, connect: Connect, clock: Clock
) -> None:
    """It writes nothing, and all that its own connection wrote before is copied."""
    other, job = await connect(two.url()), a_job()
    for each in (engine, other):
        await until_it_works(lambda each=each: each.jobs.enqueue([a_job()], now=clock.now))
    two.replica.pause()
    for each in (engine, other, other):
        before = marks(two.primary)
        with pytest.raises(EngineUnavailable, match="0 instead of 1"):
            await each.jobs.enqueue([job], now=clock.now)
        assert marks(two.primary) == before + 1, "newer servers wait for a connection's own writes alone"
    two.replica.resume()
    assert created(await until_it_works(lambda: other.jobs.enqueue([job], now=clock.now))) == [False]


async def test_a_batch_waits_once_and_in_the_same_trip(two: Two, engine: RedisEngine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    before, waits = engine.store.enqueues.trips, calls(two.primary, "wait")
    jobs = some_jobs(500)
    answers = await enqueue_at_once(engine, jobs)
    assert answers == [[Stored(job.id, True)] for job in jobs]
    trips = engine.store.enqueues.trips - before
    assert trips <= 5
    assert calls(two.primary, "wait") - waits == trips


def marks(server: RedisServer) -> int:
    """How often something was written for the sake of WAIT."""
    return int(server.command("HGET", "{tidemill}:n", "mark").split(b"\r\n")[1])


def calls(server: RedisServer, name: str) -> int:
    """How often a command was run."""
    for line in server.command("INFO", "commandstats").decode().splitlines():
        if line.startswith(f"cmdstat_{name}:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


async def test_every_kind_of_write_waits(two: Two, engine: RedisEngine, clock: Clock) -> None:
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    run, _ = await claimant.take()
    note = Note(id=run.id, fence=run.fence, entry=LogLine(number=1, level="info", message="hi"))
    for call, waits in (
        (partial(engine.jobs.write, [note], now=clock.now), 1),
        (partial(engine.jobs.cancel, ids_of(jobs), now=clock.now), 1),
        (partial(claimant.complete, run), 1),
        (partial(engine.jobs.replay, [run.id], token=bytes(16), now=clock.now), 1),
        (partial(engine.jobs.retire, claimant.id, now=clock.now), 1),
        (partial(claimant.heartbeat), 0),
        (partial(engine.jobs.promote, now=clock.now), 0),
        (partial(engine.inspect.counts, now=clock.now), 0),
    ):
        before = calls(two.primary, "wait")
        answer = await call()
        waited = calls(two.primary, "wait") - before  # twice where the server did not know the script yet
        assert min(waited, 1) == waits, call
        if call.func == engine.jobs.replay:
            assert answer == [ReplayAnswer.REPLAYED]


def test_what_is_not_waited_for_is_there() -> None:
    assert set(OPERATIONS) >= NOT_WAITED_FOR
    assert all(script(name).writes for name in NOT_WAITED_FOR)


async def test_a_full_server_lets_running_work_finish_here_too(
    two: Two, engine: RedisEngine, clock: Clock
) -> None:
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    two.primary.command("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(EngineFull):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    assert await claimant.complete(run) == [Answer.APPLIED], "on a connection that is new"


@pytest.mark.parametrize(
    "wrong",
    [
        "durability=never",
        "replicas=1",
        "replica_timeout=1",
        "durability=replicated&replicas=0",
        "durability=replicated&replicas=-1",
        "durability=replicated&replica_timeout=0",
        "durability=replicated&replica_timeout=30",
    ],
)
async def test_options_that_cannot_be_meant(url: str, wrong: str) -> None:
    with pytest.raises(BadUrl, match=r"durability|replica"):
        await open_engine(f"{url}?{wrong}")
