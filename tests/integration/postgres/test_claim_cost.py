"""What a claim pays for queues, keys and gates that have nothing for it; and that this hides nothing."""

import asyncio
from typing import Any

import pytest

from tests.integration.postgres.conftest import Plain
from tests.integration.postgres.transacted import play
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.jobs.claim import ClaimMemory
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    completed,
    configure,
    ids_of,
    some_jobs,
)

ONE = Limit(concurrency=1)
SLOW = Rate(1, per=3_600.0)
LIMITS = {
    "concurrency": QueueOptions(concurrency=1),
    "rate": QueueOptions(rate=SLOW),
    "key": QueueOptions(per_key=ONE),
    "key-rate": QueueOptions(per_key=Limit(rate=SLOW)),
    "task": QueueOptions(per_task={"t": ONE}),
    "task-rate": QueueOptions(per_task={"t": Limit(rate=SLOW)}),
    "fair": QueueOptions(fair_by="key"),
}
LOCKED = """
SELECT name FROM unnest($1::text[]) AS name WHERE EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    AND (classid::bigint << 32) | objid::bigint = tidemill.lock_v1('queue', name))
"""
CHANGING = "SELECT EXISTS (SELECT 1 FROM tidemill.queue WHERE stale IS NOT NULL OR reshaped IS NOT NULL)"
READ = "SELECT sum(idx_scan + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE schemaname = 'tidemill'"


async def claim_on(connection: Any, claimant: Claimant, clock: Clock, *queues: str, most: int = 10) -> int:
    """A claim in the transaction of this connection: how many jobs it took."""
    parameters = ClaimMemory().parameters(claimant.request(*queues, most=most))
    marks = ", ".join(f"${n}" for n in range(1, len(parameters) + 2))
    rows = await connection.fetch(f"SELECT * FROM tidemill.claim_plain_v1({marks})", *parameters, clock.now)
    return len(rows) - 1


async def locked_by_a_claim(plain: Plain, claimant: Claimant, clock: Clock, *queues: str) -> list[str]:
    """The queues whose locks a claim holds that takes three jobs."""
    connection = await plain()
    await connection.execute("SET search_path = tidemill")  # as the functions have it, for `lock_v1`
    async with connection.transaction():
        assert await claim_on(connection, claimant, clock, *queues) == 3
        return [row["name"] for row in await connection.fetch(LOCKED, queues)]


async def dated(claimant: Claimant, *queues: str) -> None:
    """Claims have noticed the options of these queues, while transactions from before them are open."""
    for _ in range(3):
        assert await claimant.take(*queues) == []


async def settled(plain: Plain, claimant: Claimant, *queues: str) -> None:
    """The same, and all transactions from before have ended: those of other tests on this server, too."""
    connection = await plain()
    async with asyncio.timeout(30):
        while await connection.fetchval(CHANGING):
            assert await claimant.take(*queues) == []
    assert await claimant.take(*queues) == []


@pytest.mark.parametrize("limit", LIMITS)
async def test_an_empty_queue_is_not_locked(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, limit: str
) -> None:
    queues = [f"limited-{n}" for n in range(30)]
    for queue in queues:
        await configure(engine, queue, LIMITS[limit], now=clock.now)
    await engine.jobs.enqueue([a_job(queue=queue) for queue in queues], now=clock.now)
    await claimant.complete(*await claimant.take(*queues))
    await settled(plain, claimant, *queues)
    await engine.jobs.enqueue(some_jobs(3, queue="busy"), now=clock.now)
    assert await locked_by_a_claim(plain, claimant, clock, *queues, "busy") == ["busy"]


async def test_an_empty_plain_queue_is_not_locked(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    queues = [f"plain-{n}" for n in range(30)]
    await engine.jobs.enqueue([a_job(queue=queue) for queue in queues], now=clock.now)
    await claimant.complete(*await claimant.take(*queues))
    await engine.jobs.enqueue(some_jobs(3, queue="busy"), now=clock.now)
    assert await locked_by_a_claim(plain, claimant, clock, *queues, "busy") == ["busy"]


@pytest.mark.parametrize("limit", [name for name in LIMITS if name != "fair"])
async def test_a_queue_whose_gates_are_full_is_not_locked(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, limit: str
) -> None:
    await configure(engine, "full", LIMITS[limit], now=clock.now)
    await engine.jobs.enqueue(some_jobs(5, queue="full", key="k"), now=clock.now)
    assert len(await claimant.take("full")) == 1
    await settled(plain, claimant, "full")
    await engine.jobs.enqueue(
        some_jobs(5, queue="full", key="k"), now=clock.now
    )  # announced, and not looked at
    await engine.jobs.promote(now=clock.now)
    await engine.jobs.enqueue(some_jobs(3, queue="busy"), now=clock.now)
    assert await locked_by_a_claim(plain, claimant, clock, "full", "busy") == ["busy"]


@pytest.mark.parametrize("limit", ["concurrency", "key", "task"])
async def test_a_full_gate_gives_when_a_holder_goes(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, limit: str
) -> None:
    """In the same trip, also beside another queue."""
    await configure(engine, "full", LIMITS[limit], now=clock.now)
    jobs = some_jobs(5, queue="full", key="k")
    await engine.jobs.enqueue(jobs, now=clock.now)
    (run,) = await claimant.take("full", "busy")
    await dated(claimant, "full", "busy")
    for n in range(1, 5):
        answer = await claimant.settle(completed(run), claim=claimant.request("full", "busy"))
        assert answer.claim is not None
        (run,) = answer.claim.jobs
        assert run.id == jobs[n].id


@pytest.mark.parametrize("analyzed", ["few", "many", ""])
@pytest.mark.parametrize("kind", ["concurrency", "rate"])
async def test_a_key_whose_gate_is_full_is_not_read(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, kind: str, analyzed: str
) -> None:
    """A claim reads as much beside 990 full keys as without them, also by plans for tables with few rows."""
    limit = Limit(concurrency=2) if kind == "concurrency" else Limit(rate=Rate(2, per=3_600.0))
    read = []
    connection = await plain()
    for queue, full in (("few", 0), ("many", 990)):
        if queue == analyzed == "many":
            await connection.execute("ANALYZE")
        await configure(engine, queue, QueueOptions(per_key=limit, fair_by="key"), now=clock.now)
        for _ in range(3):
            await engine.jobs.enqueue(
                [a_job(queue=queue, key=f"full-{n}") for n in range(full)], now=clock.now
            )
        while await claimant.take(queue, most=1_000):
            pass
        await settled(plain, claimant, queue)
        await engine.jobs.enqueue(
            [a_job(queue=queue, key=f"open-{n}") for n in range(10) for _ in range(5)], now=clock.now
        )
        assert len(await claimant.take(queue, most=1)) == 1  # announcements are folded
        if queue == analyzed == "few":
            await connection.execute("VACUUM ANALYZE")
        async with connection.transaction():
            before = await connection.fetchval(READ)
            assert await claim_on(connection, claimant, clock, queue) == 10
            read.append(int(await connection.fetchval(READ)) - int(before or 0))
    few, many = read
    assert many <= 1.1 * few, f"{many} rows and searches instead of {few}"


# What a claim could overlook


async def test_a_transaction_that_does_not_see_the_limit_announces_its_jobs(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """It has a snapshot from before the limit, and stores its jobs when nothing looks for them any more."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.complete(await claimant.take_one())
    user = await plain()
    async with user.transaction(isolation="repeatable_read"):
        await user.fetch("SELECT count(*) FROM tidemill.queue")
        await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
        await dated(claimant, "q")
        job = a_job()
        await play(user, engine.transactions.enqueue([job]))
    clock.now = 2 * clock.now
    await claimant.heartbeat()
    assert ids_of(await claimant.take()) == [job.id]


async def test_an_open_transaction_from_before_the_limit_hides_nothing(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """It has read the queue's former options, and says nothing to the new ones."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.complete(await claimant.take_one())
    user, job = await plain(), a_job()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([job]))
        await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
        await dated(claimant, "q")
    clock.now = 2 * clock.now
    await claimant.heartbeat()
    assert ids_of(await claimant.take()) == [job.id]


async def test_jobs_that_move_out_of_former_groups_are_announced(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """A transaction that sees the queue's groups stores them there when it has none any more."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.complete(await claimant.take_one())
    user, jobs = await plain(), [a_job(key=key) for key in "ab"]
    async with user.transaction(isolation="repeatable_read"):
        await user.fetch("SELECT count(*) FROM tidemill.queue")
        await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
        await settled(plain, claimant, "q")
        await play(user, engine.transactions.enqueue(jobs))
    await engine.late_commits.once_a_lease()
    assert await user.fetchval("SELECT count(*) FROM tidemill.job WHERE state = 2 AND lane = ''") == 2
    assert await user.fetchval("SELECT count(*) FROM tidemill.lane_new WHERE lane = ''") == 1
    await user.execute("DELETE FROM tidemill.lane_new WHERE lane <> ''")  # what it said of the former ones
    assert sorted(ids_of(await claimant.take())) == sorted(ids_of(jobs))


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_claim_that_is_rolled_back_closes_no_lane(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, limit: str
) -> None:
    await configure(engine, "q", LIMITS[limit], now=clock.now)
    await dated(claimant, "q")
    job = a_job()
    await engine.jobs.enqueue([job], now=clock.now)
    connection = await plain()
    undone = connection.transaction()
    await undone.start()
    assert await claim_on(connection, claimant, clock, "q") == 1
    await undone.rollback()
    assert ids_of(await claimant.take()) == [job.id]


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_job_released_into_a_closed_lane_is_found(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, limit: str
) -> None:
    await configure(engine, "q", LIMITS[limit], now=clock.now)
    job = a_job()
    await engine.jobs.enqueue([job], now=clock.now)
    run = await claimant.take_one()
    await dated(claimant, "q")
    await claimant.release(run)
    clock.forward(3_700)
    await claimant.heartbeat()
    assert ids_of(await claimant.take()) == [job.id]


async def test_promotes_fold_what_no_claim_does(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Claims pass a queue whose gate is full; a plain queue needs no announcements."""
    connection = await plain()
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await claimant.take_one()
    await dated(claimant, "q")
    for _ in range(5):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    async with connection.transaction(isolation="repeatable_read"):
        await play(connection, engine.transactions.enqueue([a_job(queue="plain")]))
    announced = "SELECT count(*) FROM tidemill.lane_new"
    assert await connection.fetchval(announced) == 6
    await engine.jobs.promote(now=clock.now)
    await engine.jobs.promote(now=clock.now)
    assert await connection.fetchval(announced) == 0


async def test_what_a_settle_makes_ready_is_given_by_its_claim(
    engine: PostgresEngine, claimant: Claimant, clock: Clock
) -> None:
    """In queues that had nothing before."""
    await configure(engine, "limited", QueueOptions(concurrency=5), now=clock.now)
    parent = a_job(queue="first")
    children = [a_job(queue=queue, after=(parent.id,)) for queue in ("limited", "plain")]
    await engine.jobs.enqueue([parent, *children], now=clock.now)
    queues = ("first", "limited", "plain")
    (run,) = await claimant.take(*queues)
    await dated(claimant, *queues)
    answer = await claimant.settle(completed(run), claim=claimant.request(*queues))
    assert answer.claim is not None
    assert sorted(ids_of(answer.claim.jobs)) == sorted(ids_of(children))
