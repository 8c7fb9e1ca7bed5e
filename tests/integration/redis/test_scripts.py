"""The Lua files: each is valid, and a call is one round trip whatever the server remembers of them."""

import re
from typing import Any

import pytest

from tests.integration.redis.conftest import Command, Connect, behind
from tests.producing import enqueue_at_once
from tests.servers.proxy import Proxy
from tidemill.engine.protocol import PRUNE_LIMIT
from tidemill.engines.redis.db.schema import FLAGS_SINCE
from tidemill.engines.redis.db.scripts import lua_files, script, source
from tidemill.engines.redis.engine import RedisEngine
from tidemill.model.jobs.run import Answer, Then
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    completed,
    configure,
    created,
    ids_of,
    some_jobs,
)

NAMES = sorted(lua_files())


OPERATIONS = [
    name for name in NAMES if not source(name).startswith(("--# include", "--# at need")) and name != "core"
]


def server_version(command: Command) -> tuple[int, ...]:
    info = re.search(rb"redis_version:(\d+)\.(\d+)", command("INFO", "server"))
    assert info
    return tuple(map(int, info.groups()))


@pytest.mark.parametrize("flags", [True, False], ids=["flags", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_valid(command: Command, name: str, flags: bool) -> None:
    if flags and server_version(command) < FLAGS_SINCE:
        pytest.skip("this server knows no flags")
    whole = script(name, flags=flags)
    assert command("SCRIPT", "LOAD", whole.text.decode()) == b"$40\r\n%s\r\n" % whole.sha


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_what_it_does_on_a_full_server(name: str) -> None:
    kind = source(name).splitlines()[0]
    assert kind in ("--# reads", "--# adds", "--# goes on")
    words = ("S.finish()", "'HSET'", "'HDEL'", "'HINCRBY'", "'ZADD'")
    writes = any(word in script(name).text.decode() for word in words)
    assert writes or kind == "--# reads"


@pytest.mark.parametrize("name", NAMES)
def test_every_file_opens_with_a_legend(name: str) -> None:
    lines = [line for line in source(name).splitlines() if not line.startswith("--# ")]
    assert lines[0].startswith("-- ")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_every_function_that_it_uses_once(name: str) -> None:
    """By whichever name a fragment at need is asked for, it is the right one."""
    text = re.sub(r"--.*", "", script(name).text.decode())
    defined = re.findall(r"^function S\.(\w+)", text, re.MULTILINE)
    assert set(re.findall(r"\bS\.(\w+)", text)) == set(defined)
    assert len(defined) == len(set(defined))


@pytest.mark.parametrize("name", NAMES)
def test_locals_of_a_fragment_at_need_are_its_own(name: str) -> None:
    """Another fragment would find nothing under such a name: it is said nowhere else but as a local there."""
    if not source(name).startswith("--# at need"):
        return
    own = set(re.findall(r"^local function (\w+)", source(name), re.MULTILINE))
    for names in re.findall(r"^local ([\w, ]+) =", source(name), re.MULTILINE):
        own.update(names.split(", "))
    for other in NAMES:
        if other != name:
            code = re.sub(r"--.*", "", source(other))
            elsewhere = set(re.findall(r"(?<![\w.:])(\w+)\(", code))
            elsewhere -= set(re.findall(r"local function (\w+)", code))
            for names in re.findall(r"local ([\w, ]+) =", code):
                elsewhere.difference_update(names.split(", "))
            assert not own & elsewhere


async def test_a_call_is_one_round_trip(connect: Connect, url: str, proxy: Proxy, clock: Clock) -> None:
    engine = await connect(behind(url, proxy))
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    counted: dict[str, int] = {}

    async def count(name: str, call: Any) -> Any:
        before = engine.store.trips
        answer = await call
        counted[name] = engine.store.trips - before
        return answer

    async def calls() -> None:
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
        await count("list", engine.inspect.list(JobFilter(), limit=2))
        await claimant.complete(taken[2])

    await calls()  # scripts are loaded, connections opened
    requests = proxy.requests.total()
    await calls()
    assert counted == dict.fromkeys(counted, 1)
    assert proxy.requests.total() - requests <= len(counted) + 1  # and nothing is sent beside it


async def test_scripts_that_were_flushed_are_loaded_again(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    for _ in range(3):
        jobs = some_jobs(2)
        assert created(await engine.jobs.enqueue(jobs, now=claimant.clock.now)) == [True, True]
        assert command("SCRIPT", "FLUSH").startswith(b"+OK")
        runs = await claimant.take()
        assert command("SCRIPT", "FLUSH").startswith(b"+OK")
        await claimant.complete(*runs)
    assert [queue.completed for queue in await engine.inspect.counts(now=claimant.clock.now)] == [6]


async def test_one_bad_call_among_merged_ones(engine: RedisEngine, clock: Clock) -> None:
    """A value that has no form on the wire: the others are stored all the same."""
    good, bad = some_jobs(5), a_job(codec=1 << 64)
    answers = await enqueue_at_once(engine, (*good[:3], bad, *good[3:]))
    assert [isinstance(answer, ValueError) for answer in answers] == [False] * 3 + [True] + [False] * 2


async def commands_run(command: Command) -> int:
    """How many commands the server has run, those inside scripts too."""
    stats = command("INFO", "commandstats").decode()
    lines = [line for line in stats.splitlines() if line.startswith("cmdstat_")]
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines)


@pytest.mark.parametrize("parked", [10, 1_000])
async def test_a_claim_does_not_pay_for_parked_lanes(
    engine: RedisEngine, claimant: Claimant, command: Command, parked: int
) -> None:
    """Keys whose gate is full are not scanned again until a holder goes."""
    clock = claimant.clock
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    jobs = [a_job(key=f"k{number:04}") for number in range(parked) for _ in range(2)]
    for at in range(0, len(jobs), 1_000):
        await engine.jobs.enqueue(jobs[at : at + 1_000], now=clock.now)
    assert len(await claimant.take(most=1_000)) == parked
    assert await claimant.take(most=10) == []  # meets the full ones, and parks them
    await engine.jobs.enqueue([a_job(key="z")], now=clock.now)
    before = await commands_run(command)
    assert len(await claimant.take(most=10)) == 1
    assert await commands_run(command) - before < 100


async def test_a_claim_that_takes_nothing_writes_nothing(claimant: Claimant, command: Command) -> None:
    clock = claimant.clock
    await claimant.engine.jobs.enqueue([a_job(delay=1_000_000), a_job(queue="other")], now=clock.now)

    def info(name: str) -> int:
        found = re.search(rf"{name}:(\d+)".encode(), command("INFO", "persistence"))
        assert found
        return int(found[1])

    # Redis 6.2 notes a transaction of nothing for a script that may write
    noted = 0 if server_version(command) >= FLAGS_SINCE else len("*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n")
    changes, size = info("rdb_changes_since_last_save"), info("aof_current_size")
    for _ in range(5):
        assert await claimant.take() == []
    assert info("rdb_changes_since_last_save") == changes
    assert info("aof_current_size") == size + 5 * noted


async def test_what_a_call_has_written_it_knows(
    engine: RedisEngine, claimant: Claimant, command: Command
) -> None:
    """Writes are gathered, so a script must not ask the server for what it has just written."""
    clock, next_job = claimant.clock, a_job(queue="next")
    twice = [a_job(), a_job()]
    assert created(await engine.jobs.enqueue([*twice, *twice], now=clock.now)) == [True, True, False, False]
    first, second = await claimant.take()
    follow = Then(jobs=(next_job, next_job))
    settled = await claimant.settle(
        completed(first, then=follow), completed(first, then=follow), completed(second, then=follow)
    )
    assert settled.answers == [Answer.APPLIED, Answer.ALREADY, Answer.APPLIED]
    counts = {each.queue: (each.ready, each.completed) for each in await engine.inspect.counts(now=clock.now)}
    assert counts == {"next": (1, 0), "q": (0, 2)}
    (shown,) = await engine.inspect.get([next_job.id])
    listed = (await engine.inspect.list(JobFilter(queue="next"))).jobs
    assert shown is not None
    assert [(job.id, job.seq) for job in listed] == [(next_job.id, shown.seq)]


async def test_a_claim_makes_only_so_many_dead_at_once(engine: RedisEngine, claimant: Claimant) -> None:
    """However many have expired, others need not wait for them: the claim says "come again"."""
    clock, lasting = claimant.clock, a_job()
    jobs = [*some_jobs(3_500, expires=10), lasting]
    for at in range(0, len(jobs), 1_000):
        await engine.jobs.enqueue(jobs[at : at + 1_000], now=clock.now)
    clock.now += 10
    dead = []
    while not (claim := await claimant.claim()).jobs:
        assert claim.wait == 0
        (counts,) = await engine.inspect.counts(now=clock.now)
        dead.append(counts.dead)
    assert ids_of(claim.jobs) == [lasting.id]
    assert dead == [2_000], "those of the list of expired ones, and as many met on the way"
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.dead, counts.ready) == (3_500, 0)


async def test_a_prune_says_that_more_watches_wait(engine: RedisEngine, clock: Clock) -> None:
    jobs = some_jobs(1_000)
    await engine.jobs.enqueue(jobs, now=clock.now)
    for waiter in ("one", "two"):
        await engine.jobs.watch(ids_of(jobs), waiter=waiter, ttl=10, now=clock.now)
    clock.now += 10
    pruned = [await engine.jobs.prune(limit=PRUNE_LIMIT, now=clock.now) for _ in range(3)]
    assert [(each.jobs, each.more) for each in pruned] == [(0, True), (0, True), (0, False)]


async def test_leases_that_ran_out_leave_nothing(engine: RedisEngine, clock: Clock, command: Command) -> None:
    prolonged = 0
    for name in ("short", "prolonged", "released"):
        lease = await engine.leases.acquire(name, holder="me", ttl=10, now=clock.now)
        assert lease is not None
        if name == "prolonged":
            prolonged = lease.fence
            assert await engine.leases.renew(name, fence=lease.fence, ttl=20, now=clock.now)
        if name == "released":
            assert await engine.leases.release(name, fence=lease.fence, now=clock.now)
    clock.now += 10
    await engine.jobs.prune(now=clock.now)
    assert command("HKEYS", "{tidemill}:lease") == b"*1\r\n$9\r\nprolonged\r\n"
    clock.now += 10
    assert not await engine.leases.release("prolonged", fence=prolonged, now=clock.now)
    await engine.jobs.prune(now=clock.now)
    assert command("EXISTS", "{tidemill}:lease", "{tidemill}:leaseend") == b":0\r\n"


async def test_a_claim_of_many_queues_moves_no_more_than_of_one(
    engine: RedisEngine, claimant: Claimant
) -> None:
    """Due jobs of all wanted queues share one bound; each queue has its part, and the claim says "again"."""
    clock, queues = claimant.clock, ("a", "b", "c", "d")
    for queue in queues:
        await engine.jobs.enqueue(some_jobs(600, queue=queue, delay=10), now=clock.now)
    clock.now += 10
    claim = await claimant.claim(*queues, most=1_000)
    assert {queue: sum(job.queue == queue for job in claim.jobs) for queue in queues} == dict.fromkeys(
        queues, 250
    )
    left = [each.scheduled for each in await engine.inspect.counts(now=clock.now)]
    assert left == [350] * 4
    taken = len(claim.jobs)
    while taken < 2_400:
        claim = await claimant.claim(*queues, most=1_000)
        assert claim.jobs, "none is left behind"
        taken += len(claim.jobs)
