"""`queues`: options, pauses, and the list."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import UnknownQueue
from tidemill.model.jobs.retry import Retry
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    created,
    snapshot,
    some_jobs,
)

EVERYTHING = QueueOptions(
    concurrency=5,
    rate=Rate(100, per=60.0),
    per_key=Limit(concurrency=2, rate=Rate(50, per=10.0)),
    limits={"gold": Limit(concurrency=9), "fr\u00e9e": Limit()},
    per_task={"mail": Limit(concurrency=1), "\u00e9": Limit(rate=Rate(1))},
    per_worker=Limit(concurrency=4),
    fair_by="key",
    weights={"gold": 3},
    timeout=30.0,
    retry=Retry(attempts=3, base=5.0, give_up=("builtins.ValueError",)),
    keep_completed=Keep(age=3_600.0, count=10),
    keep_dead=Keep(count=0),
    keep_cancelled=Keep(age=1.5),
    keep_body=False,
)


@pytest.mark.row("E1")
async def test_every_option_is_kept(engine: Engine, clock: Clock) -> None:
    await configure(engine, "email", EVERYTHING, now=clock.now)
    (queue,) = await engine.queues.list()
    assert (queue.name, queue.options, queue.created_at) == ("email", EVERYTHING, START)


async def test_options_are_replaced_as_a_whole(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", EVERYTHING, now=clock.now)
    clock.forward(5)
    await configure(engine, "q", QueueOptions(timeout=9.0), now=clock.now)
    (queue,) = await engine.queues.list()
    assert (queue.options, queue.created_at) == (QueueOptions(timeout=9.0), START)


async def test_queues_are_listed_by_name(engine: Engine, clock: Clock) -> None:
    for name in ("b", "a.1", "c", "B", "a-0"):
        await configure(engine, name, QueueOptions(), now=clock.now)
    names = [queue.name for queue in await engine.queues.list()]
    assert names == sorted(names)
    assert len(names) == 5


async def test_new_options_are_in_force_for_the_next_claim_anywhere(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    claimant = await a_claimant(other, clock)
    await one.jobs.enqueue(some_jobs(6), now=clock.now)
    assert len(await claimant.take(most=1)) == 1
    await configure(one, "q", QueueOptions(concurrency=3), now=clock.now)
    assert len(await claimant.take()) == 2
    await configure(one, "q", QueueOptions(), now=clock.now)
    assert len(await claimant.take()) == 3


async def test_a_pause_holds_in_every_client(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    claimant = await a_claimant(other, clock)
    await one.jobs.enqueue(some_jobs(3), now=clock.now)
    run = await claimant.take_one()
    await one.queues.pause("q", by="ann", why="too hot", now=clock.now)
    assert await claimant.take() == []
    await claimant.complete(run)
    assert await claimant.take() == []
    assert created(await one.jobs.enqueue([a_job()], now=clock.now)) == [True]
    await one.queues.resume("q", by="ann", now=clock.now)
    assert len(await claimant.take()) == 3


async def test_a_pause_is_shown_and_a_repeat_keeps_the_first(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", QueueOptions(), now=clock.now)
    clock.forward(1)
    paused_at = clock.now
    await engine.queues.pause("q", by="ann", why="too hot", now=clock.now)
    clock.forward(1)
    await engine.queues.pause("q", by="bob", why="too cold", now=clock.now)
    (queue,) = await engine.queues.list()
    assert (queue.paused_at, queue.paused_by, queue.paused_why) == (paused_at, "ann", "too hot")
    await engine.queues.resume("q", now=clock.now)
    (queue,) = await engine.queues.list()
    assert (queue.paused_at, queue.paused_by, queue.paused_why) == (None, "", "")


async def test_new_options_do_not_end_a_pause(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await engine.queues.pause("q", now=clock.now)
    await configure(engine, "q", QueueOptions(concurrency=5), now=clock.now)
    assert (await engine.queues.list())[0].paused_at == clock.now
    assert await claimant.take() == []


async def test_unknown_queues_are_not_paused(engine: Engine, clock: Clock) -> None:
    before = await snapshot(engine, clock)
    with pytest.raises(UnknownQueue):
        await engine.queues.pause("nothing", by="ann", now=clock.now)
    with pytest.raises(UnknownQueue):
        await engine.queues.resume("nothing", by="ann", now=clock.now)
    assert await snapshot(engine, clock) == before


@pytest.mark.row("E1")
async def test_the_example_queues(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    exponential, fixed = "exponential", "fixed"
    examples = {
        name: QueueOptions(
            concurrency=concurrency,
            rate=Rate.parse(rate) if rate else None,
            timeout=timeout,
            retry=Retry(attempts=attempts, backoff=backoff, base=base),  # type: ignore[arg-type]
        )
        for name, concurrency, rate, timeout, attempts, backoff, base in (
            ("email", 5, "100/60s", 30.0, 3, exponential, 5.0),
            ("pdf", 3, None, 120.0, 2, fixed, 10.0),
            ("webhooks", 10, "50/10s", 15.0, 5, exponential, 1.0),
            ("images", 4, None, 60.0, 2, fixed, 5.0),
        )
    }
    for name, options in examples.items():
        await configure(engine, name, options, now=clock.now)
        await engine.jobs.enqueue(some_jobs(20, queue=name), now=clock.now)
    assert {queue.name: queue.options for queue in await engine.queues.list()} == examples
    await claimant.take(*examples)
    running = {counts.queue: counts.running for counts in await engine.inspect.counts(now=clock.now)}
    assert running == {"email": 5, "pdf": 3, "webhooks": 10, "images": 4}
