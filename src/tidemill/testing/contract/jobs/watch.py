"""`jobs.watch`: the present state, and a signal when the job ends."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.event import waiter_topic
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
from tidemill.testing.contract.cluster.signals import receives
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    ids_of,
    job_of,
    some_jobs,
)


async def test_the_present_records_come_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(), a_job(delay=SECOND)], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run, result=b'"r"')
    (later,) = [job for job in (await engine.inspect.list(JobFilter())).jobs if job.id != run.id]
    ids = [later.id, new_id(), run.id]
    waiting, unknown, done = await engine.jobs.watch(ids, waiter="w", ttl=SECOND, now=clock.now)
    assert waiting is not None
    assert (waiting.id, waiting.state) == (later.id, JobState.SCHEDULED)
    assert unknown is None
    assert done == await job_of(engine, run.id)
    assert done is not None
    assert done.result == b'"r"'


async def test_failures_are_left_out_but_the_last_error_is_there(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run)
    (job,) = await engine.jobs.watch([run.id], waiter="w", ttl=SECOND, now=clock.now)
    assert job is not None
    assert (job.failures, job.failure_count) == ((), 1)
    assert job.error is not None
    assert job.error.message == "no route"


async def test_a_tombstone_is_answered(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue([a_job(task="mail")], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    (job,) = await engine.jobs.watch([run.id], waiter="w", ttl=SECOND, now=clock.now)
    assert job is not None
    assert (job.id, job.task, job.queue) == (run.id, "mail", "q")
    assert (job.state, job.settled_fence) == (JobState.COMPLETED, run.fence)


@pytest.mark.parametrize("how", ["complete", "fail", "stop", "cancel", "expire", "parent died"])
async def test_every_end_is_signalled(connect: Connect, clock: Clock, how: str) -> None:
    engine, waiting = await connect(), await connect()
    claimant = await a_claimant(engine, clock)
    subscription = await waiting.signals.subscribe(waiter_topic("w"))

    async def one_end() -> bytes:
        job = a_job(expires=SECOND if how == "expire" else None)
        if how == "parent died":
            parent = a_job(queue="p")
            job = a_job(after=(parent.id,))
            await engine.jobs.enqueue([parent], now=clock.now)
        await engine.jobs.enqueue([job], now=clock.now)
        await waiting.jobs.watch([job.id], waiter="w", ttl=60 * SECOND, now=clock.now)
        match how:
            case "cancel":
                await engine.jobs.cancel([job.id], now=clock.now)
            case "expire":
                clock.forward(1)
                await engine.jobs.promote(now=clock.now)
            case "parent died":
                await claimant.fail(await claimant.take_one("p"))
            case "complete":
                await claimant.complete(await claimant.take_one())
            case "fail":
                await claimant.fail(await claimant.take_one())
            case "stop":
                await claimant.stop(await claimant.take_one())
        return job.id

    assert await receives(subscription, waiter_topic("w"), one_end)


async def test_a_retry_is_no_end(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """Signals of one client come in order: what ends last is received last, and nothing before it."""
    subscription = await engine.signals.subscribe(waiter_topic("w"), waiter_topic("last"))

    async def retry_and_end() -> bytes:
        await engine.jobs.enqueue(some_jobs(2), now=clock.now)
        retried, last = await claimant.take()
        await engine.jobs.watch([retried.id], waiter="w", ttl=60 * SECOND, now=clock.now)
        await engine.jobs.watch([last.id], waiter="last", ttl=60 * SECOND, now=clock.now)
        await claimant.fail(retried, retry_in=60 * SECOND)
        await claimant.complete(last)
        return last.id

    assert await receives(subscription, waiter_topic("last"), retry_and_end)


async def test_nobody_is_told_what_he_does_not_watch(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    topics = [waiter_topic(waiter) for waiter in ("last", "forgotten", "other")]
    subscription = await engine.signals.subscribe(*topics)

    async def end_all() -> bytes:
        await engine.jobs.enqueue(some_jobs(4), now=clock.now)
        pruned, unwatched, elsewhere, last = await claimant.take()
        await engine.jobs.watch([last.id], waiter="last", ttl=60 * SECOND, now=clock.now)
        await engine.jobs.watch([elsewhere.id], waiter="elsewhere", ttl=60 * SECOND, now=clock.now)
        await engine.jobs.watch([pruned.id], waiter="forgotten", ttl=SECOND, now=clock.now)
        clock.forward(2)
        await engine.jobs.prune(now=clock.now)
        await claimant.complete(pruned, unwatched, elsewhere)
        await claimant.complete(last)
        return last.id

    assert await receives(subscription, waiter_topic("last"), end_all)


async def test_watching_again_prolongs(connect: Connect, clock: Clock) -> None:
    engine = await connect()
    claimant = await a_claimant(engine, clock)
    subscription = await engine.signals.subscribe(waiter_topic("w"))

    async def one_end() -> bytes:
        await engine.jobs.enqueue([a_job()], now=clock.now)
        run = await claimant.take_one()
        for _ in range(3):
            await engine.jobs.watch([run.id], waiter="w", ttl=2 * SECOND, now=clock.now)
            clock.forward(1.5)
        await claimant.complete(run)
        return run.id

    assert await receives(subscription, waiter_topic("w"), one_end)


async def test_several_waiters_each_get_their_signal(connect: Connect, clock: Clock) -> None:
    engine = await connect()
    claimant = await a_claimant(engine, clock)
    names = ("one", "two")
    subscriptions = [await (await connect()).signals.subscribe(waiter_topic(name)) for name in names]
    for name, subscription in zip(names, subscriptions, strict=True):

        async def one_end() -> bytes:
            jobs = some_jobs(2)
            await engine.jobs.enqueue(jobs, now=clock.now)
            for waiter in names:
                await engine.jobs.watch(ids_of(jobs), waiter=waiter, ttl=60 * SECOND, now=clock.now)
            first, second = await claimant.take()
            await claimant.complete(second)
            await claimant.complete(first)
            return second.id

        assert await receives(subscription, waiter_topic(name), one_end)
