"""A server that lost what it had acknowledged: it is noticed, it is loud, and everybody goes on."""

import asyncio
import logging

import pytest
from msgspec.structs import replace

from tests.integration.outages import Groups, until_it_works
from tests.integration.redis.app import app
from tests.integration.redis.conftest import Command, Connect, Servers, behind
from tests.integration.supervisor.groups import a_config, a_job, enqueue, finished, states
from tests.integration.supervisor.processes import until
from tests.servers.proxy import Proxy
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.redis.engine import RedisEngine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.storage import warnings_of
from tidemill.model.time import DAY
from tidemill.testing.contract.fixtures import Claimant, Clock, a_claimant, ids_of, some_jobs
from tidemill.worker.process.embedded import EmbeddedWorker

MODULE = "tests.integration.redis.app"
KEEPS_NOTHING = {"appendonly": "no", "save": ""}

pytestmark = pytest.mark.row("A4")


async def test_a_restart_without_data_is_noticed(servers: Servers, connect: Connect, clock: Clock) -> None:
    server = servers(**KEEPS_NOTHING)
    engine = await connect(server.url())
    assert [warning.kind for warning in warnings_of(await engine.inspect.storage())] == ["unsaved"]
    claimant = await a_claimant(engine, clock)
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    runs = await claimant.take(most=3)
    assert not (await claimant.heartbeat()).rolled_back
    server.kill()
    server.start()
    reply = await until_it_works(claimant.heartbeat)
    assert (reply.rolled_back, reply.new) == (True, True)
    assert reply.lost == [run.fence for run in runs], "they belong to nobody any more"
    assert not (await claimant.heartbeat()).rolled_back, "it is reported once"
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    later = await claimant.take()
    assert min(run.fence for run in later) > max(run.fence for run in runs)
    assert await claimant.complete(*runs) == [Answer.STALE] * 3
    assert await claimant.complete(*later) == [Answer.APPLIED] * 3
    assert [warning.kind for warning in warnings_of(await engine.inspect.storage())] == [
        "rolled back",
        "unsaved",
    ]
    await (await open_engine(server.url(), migrate=False)).close()  # the namespace is ours again


async def test_a_replica_that_lagged_takes_over(
    servers: Servers, connect: Connect, proxy: Proxy, clock: Clock
) -> None:
    """Of two members, the one whose heartbeat was lost gets the report, although the other has sent a
    heartbeat since. The other gets it with its next heartbeat."""
    primary, replica = servers(), servers()
    primary.copied_by(replica)
    proxy.retarget(primary.port)
    engine, second = [await connect(behind(primary.url(), proxy)) for _ in range(2)]
    one, other = await a_claimant(engine, clock), await a_claimant(second, clock, name="host:2")
    jobs = some_jobs(6)
    await engine.jobs.enqueue(jobs, now=clock.now)
    first = await one.take(most=2)
    primary.wait_for(replica)
    replica.command("REPLICAOF", "NO", "ONE")  # from here on it knows nothing of what the primary does
    await one.complete(*first)
    await other.heartbeat()
    late = await other.take(most=2)
    proxy.retarget(replica.port)
    primary.kill()
    assert not (await until_it_works(one.heartbeat)).rolled_back
    reply = await until_it_works(other.heartbeat)
    assert reply.rolled_back
    assert reply.lost == [run.fence for run in late]
    assert [(await one.heartbeat()).rolled_back, (await one.heartbeat()).rolled_back] == [True, False]
    assert await other.complete(*late) == [Answer.STALE] * 2
    again = await one.take(most=10)
    assert ids_of(again) == ids_of(jobs), "what had ended runs again: its end was lost"
    assert min(run.fence for run in again) > max(run.fence for run in (*first, *late))
    await one.complete(*again)
    assert {job.state for job in await engine.inspect.get(ids_of(jobs)) if job} == {JobState.COMPLETED}


async def test_lost_data_without_a_heartbeat_is_seen_by_the_next_claim(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    """The server's record of the claimant is older than what the claimant was answered."""
    clock = claimant.clock
    await engine.jobs.enqueue(some_jobs(6), now=clock.now)
    await claimant.complete(*await claimant.take(most=1))
    before = command("DUMP", "{tidemill}:claimant")
    await claimant.complete(*await claimant.take(most=1))
    assert not (await claimant.heartbeat()).rolled_back
    restore(command, "{tidemill}:claimant", before)
    await claimant.complete(*await claimant.take(most=1))
    assert [(await claimant.heartbeat()).rolled_back, (await claimant.heartbeat()).rolled_back] == [
        True,
        False,
    ]


async def test_claims_that_take_nothing_notice_it_once(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    clock = claimant.clock
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await claimant.complete(*await claimant.take(most=1))
    before = command("DUMP", "{tidemill}:claimant")
    await claimant.complete(*await claimant.take(most=1))
    restore(command, "{tidemill}:claimant", before)
    assert await claimant.take() == []
    assert (await claimant.heartbeat()).rolled_back
    noted = command("HGET", "{tidemill}:n", "rolled")
    for _ in range(3):
        assert await claimant.take() == []
        assert not (await claimant.heartbeat()).rolled_back
    assert command("HGET", "{tidemill}:n", "rolled") == noted
    await engine.jobs.enqueue(some_jobs(1), now=clock.now)
    assert len(await claimant.take()) == 1


def restore(command: Command, key: str, dumped: bytes) -> None:
    """Put back an earlier value, as `DUMP` has answered it."""
    value = dumped.partition(b"\r\n")[2].removesuffix(b"\r\n").decode("latin-1")
    assert command("EVAL", RESTORE, "1", key, *(str(ord(byte)) for byte in value)).startswith(b"+OK")


RESTORE = """
local bytes = {}
for n, code in ipairs(ARGV) do bytes[n] = string.char(code) end
return redis.call('RESTORE', KEYS[1], 0, table.concat(bytes), 'REPLACE')
"""
"""The test's own commands are text; a dump is not."""


async def test_lost_data_is_noticed_by_a_fence_too(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    """A claim was lost, and no heartbeat with it. A fence is not given twice, whatever the server's clock."""
    clock = claimant.clock
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    ahead = int(await engine.now()) + 3_600_000_000
    command("HSET", "{tidemill}:n", "fence", str(ahead))  # as a clock that went ahead would have it
    (run,) = await claimant.take(most=1)
    assert run.fence == ahead + 1
    command("HSET", "{tidemill}:n", "fence", "1")
    assert (await claimant.heartbeat()).rolled_back
    assert [each.fence for each in await claimant.take(most=1)] == [ahead + 2]
    assert not (await claimant.heartbeat()).rolled_back


async def test_a_fence_that_has_ended_before_the_next_heartbeat_counts_too(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=claimant.clock.now)
    (run,) = await claimant.take(most=1)
    await claimant.complete(run)
    command("HSET", "{tidemill}:n", "fence", "1")
    assert (await claimant.heartbeat()).rolled_back
    assert (await claimant.take_one()).fence > run.fence


async def test_a_fence_that_nobody_has_given_out_lifts_nothing(
    engine: RedisEngine, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(1), now=claimant.clock.now)
    absurd = (int(await engine.now()) + 30 * DAY, 2**53, 2**62)
    reply = await claimant.heartbeat(held=absurd)
    assert (reply.lost, reply.rolled_back) == (list(absurd), False)
    assert not (await claimant.heartbeat()).rolled_back
    assert (await claimant.take_one()).fence < absurd[0]


async def test_lost_data_is_reported_again_if_the_answer_did_not_arrive(
    connect: Connect, clock: Clock, proxy: Proxy, command: Command, url: str
) -> None:
    claimant = await a_claimant(await connect(behind(url, proxy)), clock)
    await claimant.heartbeat()
    forget_heartbeats(command)
    proxy.cut_next_reply("heartbeats")
    with pytest.raises(EngineUnavailable):
        await claimant.heartbeat()
    assert proxy.cuts == 1
    assert [
        (await until_it_works(claimant.heartbeat)).rolled_back,
        (await claimant.heartbeat()).rolled_back,
    ] == [
        True,
        False,
    ]


def forget_heartbeats(command: Command) -> None:
    """As a server that has lost the last ones."""
    assert command("HSET", "{tidemill}:n", "heartbeat", "1").startswith(b":")


async def test_lost_data_is_reported_to_everybody_once(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    """To one that the server has forgotten too, and to one that was there before in another process; not to
    one that is new."""
    before = command("DUMP", "{tidemill}:member")
    other = await a_claimant(engine, claimant.clock, name="host:2")
    await claimant.heartbeat()
    restore(command, "{tidemill}:member", before)
    forget_heartbeats(command)
    reply = await claimant.heartbeat()
    assert (reply.new, reply.rolled_back) == (False, True)
    noted = command("HGET", "{tidemill}:n", "rolled")
    reply = await other.heartbeat()
    assert (reply.new, reply.rolled_back) == (True, True)
    newcomer = Claimant(engine, claimant.clock, name="host:3")
    for each in (newcomer, claimant, other):
        assert not (await each.heartbeat()).rolled_back
    assert command("HGET", "{tidemill}:n", "rolled") == noted, "as one event"


async def test_losing_the_note_of_lost_data_is_noticed_too(
    connect: Connect, claimant: Claimant, command: Command
) -> None:
    other = await a_claimant(await connect(), claimant.clock, name="host:2")
    before = command("DUMP", "{tidemill}:n")
    await claimant.heartbeat()
    forget_heartbeats(command)
    assert (await claimant.heartbeat()).rolled_back
    restore(command, "{tidemill}:n", before)
    for each in (claimant, other):
        assert [(await each.heartbeat()).rolled_back, (await each.heartbeat()).rolled_back] == [True, False]


async def test_a_member_that_was_swept_is_no_lost_data(engine: RedisEngine, clock: Clock) -> None:
    claimant = await a_claimant(engine, clock)
    await engine.members.leave(claimant.member.id, now=clock.now)
    other = await a_claimant(engine, clock, name="host:2")
    for _ in range(3):
        await other.heartbeat()
    reply = await claimant.heartbeat()
    assert (reply.new, reply.rolled_back) == (True, False)
    assert (await engine.inspect.storage()).rolled_back is None


async def test_a_policy_that_is_changed_later_is_reported_by_heartbeats(
    servers: Servers, connect: Connect, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server = servers(maxmemory="100mb")
    engine = await connect(server.url())
    claimant = await a_claimant(engine, clock)
    server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with caplog.at_level(logging.INFO, "tidemill.engine"):
        for _ in range(3):
            await claimant.heartbeat()
        assert [(record.levelname, "noeviction" in record.message) for record in caplog.records] == [
            ("ERROR", True)
        ]
        (warning,) = warnings_of(await engine.inspect.storage())
        assert "maxmemory-policy allkeys-lru" in warning.text
        server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        await claimant.heartbeat()
        assert "keeps its keys again" in caplog.records[-1].message
    assert warnings_of(await engine.inspect.storage()) == []


async def is_published(engine: Engine) -> bool:
    queues = {queue.name: queue.options for queue in await engine.queues.list()}
    tasks = [entry.name for entry in await engine.tasks.list()]
    return queues.get("narrow") == QueueOptions(concurrency=2) and f"{MODULE}.squeeze" in tasks


async def until_published(engine: Engine) -> None:
    async with asyncio.timeout(30):
        while not await is_published(engine):  # noqa: ASYNC110  (nobody signals it)
            await asyncio.sleep(0.02)


async def test_workers_publish_again(url: str, engine: RedisEngine, command: Command, groups: Groups) -> None:
    """Without it the limits of queues would be gone until the next start."""
    group = await groups(url)(processes=2, app=f"{MODULE}:app", queues=("narrow",)).ready(2)
    await until_published(engine)
    assert command("FLUSHDB", "SYNC").startswith(b"+OK")
    await until_published(engine)
    await until(lambda: "the engine has lost data" in group.log)
    assert "ERROR" in next(line for line in group.log.splitlines() if "lost data" in line)
    jobs = [replace(a_job("", n, queue="narrow"), task=f"{MODULE}.squeeze") for n in range(10)]
    ended = await finished(engine, await enqueue(engine, *jobs))
    assert states(ended) == {"completed": 10}
    assert await group.stop() == 0


async def test_an_embedded_worker_publishes_again(url: str, engine: RedisEngine, command: Command) -> None:
    config = a_config(url, app="", queues=("narrow",))
    async with EmbeddedWorker(app.registry, config) as worker:
        await worker.moments.reached("idle")  # it has published, it is known, it has claimed
        assert await is_published(engine)
        command("FLUSHDB", "SYNC")
        async with asyncio.timeout(30):
            await worker.moments.reached("published", 2)
        assert await is_published(engine)
