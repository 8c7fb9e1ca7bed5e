"""Lost replies of every facet but `jobs`."""

import asyncio
from collections.abc import Awaitable, Callable
from unittest.mock import ANY

import msgspec
import pytest

from tidemill.engine.protocol import Engine, Script, TransactionsFacet
from tidemill.model.jobs.run import Checkpoint, LogLine
from tidemill.model.queues.layers import Declaration
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.schedules.schedule import Every, Schedule, tick_id
from tidemill.model.stats.batch import StatsBatch, StatsRow
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import MINUTE, SECOND
from tidemill.model.view import JobFilter, TaskEntry
from tidemill.testing.contract.faults.cut import Cut, Stage, known, scenario
from tidemill.testing.contract.fixtures import START, a_job, completed, configure, some_jobs

TTL = 15 * SECOND


async def a_past(stage: Stage) -> bytes:
    """Something to look at: a job that failed once, with a log; others in several states."""
    await stage.engine.jobs.enqueue([*some_jobs(4), a_job(delay=SECOND)], now=stage.now)
    run, done, _ = await stage.claimant.take(most=3)
    await stage.claimant.write(
        run, LogLine(number=1, level="info", message="x"), Checkpoint(name="a", value=b"1")
    )
    await stage.claimant.fail(run, retry_in=SECOND)
    await stage.claimant.complete(done)
    await configure(stage.engine, "q", QueueOptions(concurrency=9), now=stage.now)
    await stage.engine.queues.override("q", {"concurrency": 8}, by="ann", now=stage.now)
    return run.id


@scenario
async def inspect_get(stage: Stage) -> Cut:
    job_id = await a_past(stage)
    return Cut(lambda engine: engine.inspect.get([job_id], now=stage.now), changes=False)


@scenario
async def inspect_list(stage: Stage) -> Cut:
    await a_past(stage)
    cursor = (await stage.engine.inspect.list(JobFilter(), limit=2)).cursor
    return Cut(lambda engine: engine.inspect.list(JobFilter(), cursor=cursor, limit=2), changes=False)


@scenario
async def inspect_dead_groups(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job(task=name) for name in "abc"], now=stage.now)
    await stage.claimant.fail(*await stage.claimant.take())
    cursor = (await stage.engine.inspect.dead_groups(limit=1)).cursor
    return Cut(lambda engine: engine.inspect.dead_groups(cursor=cursor, limit=1), changes=False)


@scenario
async def inspect_why(stage: Stage) -> Cut:
    jobs = [a_job() for _ in range(3)]
    await stage.engine.jobs.enqueue(jobs, now=stage.now)
    await stage.claimant.take(most=1)
    return Cut(lambda engine: engine.inspect.why([job.id for job in jobs], now=stage.now), changes=False)


@scenario
async def inspect_counts(stage: Stage) -> Cut:
    await a_past(stage)

    async def counts(engine: Engine) -> object:
        found = await engine.inspect.counts(now=stage.now)
        return [msgspec.structs.replace(each, age=0) for each in found]

    return Cut(counts, changes=False)


@scenario
async def inspect_series(stage: Stage) -> Cut:
    await a_past(stage)
    until = START + 5 * MINUTE
    return Cut(lambda engine: engine.inspect.series(since=START, until=until, step=MINUTE), changes=False)


@scenario
async def inspect_stats(stage: Stage) -> Cut:
    await a_past(stage)
    until = START + 5 * MINUTE
    return Cut(lambda engine: engine.inspect.stats(since=START, until=until, step=MINUTE), changes=False)


@scenario
async def queues_sample(stage: Stage) -> Cut:
    samples = [QueueSample(queue="q", stock=3, arrived=2)]
    minute = stage.now - stage.now % MINUTE
    return Cut(lambda engine: engine.queues.sample(minute, samples, now=stage.now), lambda _: False)


@scenario
async def inspect_log(stage: Stage) -> Cut:
    job_id = await a_past(stage)
    return Cut(lambda engine: engine.inspect.log(job_id), changes=False)


@scenario
async def inspect_checkpoints(stage: Stage) -> Cut:
    job_id = await a_past(stage)
    return Cut(lambda engine: engine.inspect.checkpoints(job_id), changes=False)


@scenario
async def inspect_audit(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(lambda engine: engine.inspect.audit(), changes=False)


@scenario
async def inspect_storage(stage: Stage) -> Cut:
    await a_past(stage)

    async def names(engine: Engine) -> set[str]:  # sizes are estimates, and others work meanwhile
        return {part.name for part in (await engine.inspect.storage()).parts}

    return Cut(names, changes=False)


@scenario
async def queues_declare(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3, key="k"), now=stage.now)
    said = {
        "q": Declaration(fields={"fair_by": "key", "concurrency": 2}, declared_at=stage.now),
        "new": Declaration(declared_at=stage.now),
    }
    return Cut(lambda engine: engine.queues.declare("shop", said, now=stage.now))


@scenario
async def queues_retire(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(
        lambda engine: engine.queues.retire(
            "q", "shop", declared_at=stage.now, by="controller", now=stage.now
        ),
        again=lambda _: False,
    )


@scenario
async def queues_override(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(
        lambda engine: engine.queues.override(
            "q", {"concurrency": None, "fair_by": "key"}, by="bob", why="night", version=2, now=stage.now
        )
    )


@scenario
async def queues_reset(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(lambda engine: engine.queues.reset("q", ["concurrency"], by="bob", version=2, now=stage.now))


@scenario
async def queues_list(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(lambda engine: engine.queues.list(), changes=False)


@scenario
async def queues_pause(stage: Stage) -> Cut:
    await a_past(stage)
    return Cut(lambda engine: engine.queues.pause("q", by="ann", why="hot", now=stage.now))


@scenario
async def queues_resume(stage: Stage) -> Cut:
    await a_past(stage)
    await stage.engine.queues.pause("q", now=stage.now)
    return Cut(lambda engine: engine.queues.resume("q", by="ann", now=stage.now))


@scenario
async def tasks_publish(stage: Stage) -> Cut:
    entries = [TaskEntry(name=name, queue="q") for name in "ab"]
    return Cut(lambda engine: engine.tasks.publish(entries, now=stage.now))


@scenario
async def tasks_list(stage: Stage) -> Cut:
    await stage.engine.tasks.publish([TaskEntry(name="a", queue="q")], now=stage.now)
    return Cut(lambda engine: engine.tasks.list(), changes=False)


@scenario
async def tasks_pause(stage: Stage) -> Cut:
    await stage.engine.tasks.publish([TaskEntry(name="a", queue="q")], now=stage.now)
    return Cut(lambda engine: engine.tasks.pause("a", by="ann", why="hot", now=stage.now))


@scenario
async def tasks_resume(stage: Stage) -> Cut:
    await stage.engine.tasks.publish([TaskEntry(name="a", queue="q")], now=stage.now)
    await stage.engine.tasks.pause("a", now=stage.now)
    return Cut(lambda engine: engine.tasks.resume("a", by="ann", now=stage.now))


async def a_schedule(stage: Stage) -> Schedule:
    schedule = Schedule(name="s", timing=Every(seconds=60), job=a_job(), next_at=100)
    await stage.engine.schedules.put([schedule], now=stage.now)
    return schedule


@scenario
async def schedules_put(stage: Stage) -> Cut:
    schedule = await a_schedule(stage)
    changed = [msgspec.structs.replace(schedule, timing=Every(seconds=9), next_at=7)]
    return Cut(lambda engine: engine.schedules.put(changed, by="ann", now=stage.now))


@scenario
async def schedules_list(stage: Stage) -> Cut:
    await a_schedule(stage)
    return Cut(lambda engine: engine.schedules.list(), changes=False)


@scenario
async def schedules_fire(stage: Stage) -> Cut:
    await a_schedule(stage)
    jobs = [a_job(id=tick_id("s", 100))]
    return Cut(
        lambda engine: engine.schedules.fire(
            "s", tick=100, before=None, next_at=200, jobs=jobs, last_at=100, kept=[100], now=stage.now
        ),
        lambda _: None,
    )


@scenario
async def schedules_pause(stage: Stage) -> Cut:
    await a_schedule(stage)
    return Cut(lambda engine: engine.schedules.pause("s", paused=True, by="ann", now=stage.now))


@scenario
async def schedules_retire(stage: Stage) -> Cut:
    await a_schedule(stage)
    return Cut(lambda engine: engine.schedules.retire("s", retired=True, by="ann", now=stage.now))


@scenario
async def schedules_remove(stage: Stage) -> Cut:
    await a_schedule(stage)
    return Cut(lambda engine: engine.schedules.remove("s", by="ann", now=stage.now), lambda _: False)


async def a_fence(stage: Stage) -> int:
    lease = await stage.engine.leases.acquire("l", holder="me", ttl=TTL, now=stage.now)
    assert lease is not None
    stage.clock.forward(5)
    return lease.fence


@scenario
async def leases_acquire(stage: Stage) -> Cut:
    return Cut(lambda engine: engine.leases.acquire("l", holder="me", ttl=TTL, now=stage.now))


@scenario
async def leases_renew(stage: Stage) -> Cut:
    fence = await a_fence(stage)
    return Cut(lambda engine: engine.leases.renew("l", fence=fence, ttl=TTL, now=stage.now))


@scenario
async def leases_release(stage: Stage) -> Cut:
    fence = await a_fence(stage)
    return Cut(lambda engine: engine.leases.release("l", fence=fence, now=stage.now), lambda _: False)


@scenario
async def leases_list(stage: Stage) -> Cut:
    await a_fence(stage)
    return Cut(lambda engine: engine.leases.list(now=stage.now), changes=False)


@scenario
async def members_heartbeat(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    _, forgotten, asked = await stage.claimant.take()
    await stage.engine.jobs.cancel([asked.id], now=stage.now)
    del stage.claimant.held[forgotten.fence]
    stage.claimant.held[1] = b""  # long gone
    stage.clock.forward(1)

    async def heartbeat(engine: Engine) -> object:
        stage.claimant.engine = engine
        return await stage.claimant.heartbeat()

    return Cut(heartbeat, lambda first: msgspec.structs.replace(first, number=ANY))


@scenario
async def members_heartbeat__with_statistics(stage: Stage) -> Cut:
    batch = StatsBatch(1, (StatsRow("q", "t", (3 << 7,)),))
    member = stage.claimant.member
    return Cut(
        lambda engine: engine.members.heartbeat(member, statistics=batch, now=stage.now),
        lambda first: msgspec.structs.replace(first, number=ANY),
    )


@scenario
async def members_leave(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue(some_jobs(3), now=stage.now)
    await stage.claimant.take()
    return Cut(lambda engine: engine.members.leave(stage.claimant.member.id, now=stage.now), lambda _: 0)


@scenario
async def members_list(stage: Stage) -> Cut:
    return Cut(lambda engine: engine.members.list(now=stage.now), changes=False)


@scenario
async def signals_publish(stage: Stage) -> Cut:
    return Cut(lambda engine: engine.signals.publish("news", "hello"), changes=False)


@scenario
async def signals_subscribe(stage: Stage) -> Cut:
    async def subscribe(engine: Engine) -> object:
        subscription = await engine.signals.subscribe("silence")
        await subscription.close()
        return await subscription.next(5)

    return Cut(subscribe, lambda _: None, changes=False)


@scenario
async def subscription_next(stage: Stage) -> Cut:
    subscription = await stage.engine.signals.subscribe("silence")
    await subscription.close()
    return Cut(lambda _: subscription.next(5), lambda _: None, changes=False)


@scenario
async def subscription_close(stage: Stage) -> Cut:
    subscription = await stage.engine.signals.subscribe("silence")
    return Cut(lambda _: subscription.close(), changes=False)


@scenario
async def blocking_enqueue(stage: Stage) -> Cut:
    if stage.engine.blocking is None:
        pytest.skip("threads go through this engine's loop")
    jobs = some_jobs(2)

    async def enqueue(engine: Engine) -> object:
        assert engine.blocking is not None
        return await asyncio.to_thread(engine.blocking.enqueue, jobs, now=stage.now)

    return Cut(enqueue, lambda _: known(jobs))


@scenario
async def transactions_enqueue(stage: Stage) -> Cut:
    """A script does nothing by itself, however often it is asked for."""
    jobs = some_jobs(2)
    return Cut(_begins(stage, lambda transactions: transactions.enqueue(jobs)), changes=False)


@scenario
async def transactions_complete(stage: Stage) -> Cut:
    await stage.engine.jobs.enqueue([a_job()], now=stage.now)
    run = await stage.claimant.take_one()
    return Cut(_begins(stage, lambda transactions: transactions.complete(completed(run))), changes=False)


@scenario
async def transactions_fates(stage: Stage) -> Cut:
    _transactions(stage.engine)
    await stage.engine.jobs.enqueue([a_job()], now=stage.now)
    run = await stage.claimant.take_one()
    return Cut(lambda engine: _transactions(engine).fates([(run.id, run.fence)]), changes=False)


def _transactions(engine: Engine) -> TransactionsFacet:
    if engine.transactions is None:
        pytest.skip("this engine has no transactions")
    return engine.transactions


def _begins(
    stage: Stage, script: Callable[[TransactionsFacet], Script[object]]
) -> Callable[[Engine], Awaitable[str]]:
    _transactions(stage.engine)

    async def first_statement(engine: Engine) -> str:
        return next(script(_transactions(engine))).sql

    return first_statement


@scenario
async def engine_now(stage: Stage) -> Cut:
    earliest = await stage.engine.now()

    async def passed(engine: Engine) -> bool:
        return await engine.now() >= earliest

    return Cut(passed, lambda _: True, changes=False)


@scenario
async def engine_close(stage: Stage) -> Cut:
    """The client that closes is not the one that looks."""
    return Cut(lambda engine: engine.close(), changes=False)
