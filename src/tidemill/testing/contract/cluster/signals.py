"""`signals`: hints between clients. They may be lost, so a test asks again until one has come."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidemill.engine.protocol import Engine, Subscription
from tidemill.model.event import ANY_TOPIC, EVENTS_TOPIC, Signal, member_topic, ready_topic
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, Connect, a_claimant, a_job, configure, created

TRIES, PATIENCE = 5, 2.0
"""A lossy signal is asked for this often, and waited for this long in seconds each time."""
QUIET = 0.1
"""After so many seconds without a signal, none of those that came before is still on its way."""


async def receives(
    subscription: Subscription, topic: str, act: Callable[[], Awaitable[bytes | None]]
) -> bool:
    """Whether acting makes a signal on the topic arrive, with the acted job's id as text if there is one."""
    for _ in range(TRIES):
        job_id = await act()
        while (signal := await subscription.next(PATIENCE)) is not None:
            assert signal.topic in (topic, ANY_TOPIC)
            if signal.topic == topic and (job_id is None or signal.text == job_id.hex()):
                return True
    return False


async def received_until(engine: Engine, subscription: Subscription, marker: str) -> set[str]:
    """The topics of everything that arrives before a marker that is published now."""
    topics: set[str] = set()
    for _ in range(TRIES):
        await engine.signals.publish(marker)
        while (signal := await subscription.next(PATIENCE)) is not None:
            if signal.topic == marker:
                return topics
            topics.add(signal.topic)
    raise AssertionError("not one of the markers arrived")


@pytest.mark.row("C5")
async def test_a_signal_reaches_every_subscriber_in_every_client(connect: Connect) -> None:
    clients = [await connect() for _ in range(3)]
    subscriptions = [await client.signals.subscribe("news", "more") for client in clients]
    subscriptions.append(await clients[0].signals.subscribe("news"))
    for subscription in subscriptions:

        async def publish() -> None:
            await clients[1].signals.publish("news", "hello")

        assert await receives(subscription, "news", publish)


async def test_the_text_arrives(engine: Engine) -> None:
    subscription = await engine.signals.subscribe("news")
    await engine.signals.publish("news", "l\u00e4uft: 1\n2")
    assert await subscription.next(PATIENCE) in (Signal("news", "l\u00e4uft: 1\n2"), Signal(ANY_TOPIC))


@pytest.mark.parametrize("topic", ["news", EVENTS_TOPIC])
async def test_a_text_as_long_as_there_is_room_arrives_whole(connect: Connect, topic: str) -> None:
    speaker, hearer = await connect(), await connect()
    assert speaker.signals.room >= 4_000
    text = "x" * speaker.signals.room
    for topics in ((topic,), (topic, "others")):
        subscription = await hearer.signals.subscribe(*topics)
        received: set[str] = set()
        for _ in range(TRIES):
            await speaker.signals.publish(topic, text)
            while text not in received and (signal := await subscription.next(PATIENCE)) is not None:
                received |= {signal.text} if signal.topic == topic else set()
            if received:
                break
        assert received == {text}
        await subscription.close()


async def test_other_topics_do_not_arrive(engine: Engine) -> None:
    subscription = await engine.signals.subscribe("news", "marker")
    await engine.signals.publish("other", "x")
    assert await received_until(engine, subscription, "marker") <= {ANY_TOPIC}


async def test_nothing_comes_when_nothing_is_published(engine: Engine) -> None:
    subscription = await engine.signals.subscribe("silence")
    assert await subscription.next(0.01) in (None, Signal(ANY_TOPIC))


async def test_closing_ends_a_pending_wait(engine: Engine) -> None:
    subscription = await engine.signals.subscribe("silence")

    async def listen() -> None:
        while await subscription.next() is not None:
            pass

    waiting = asyncio.ensure_future(listen())
    await asyncio.sleep(0)
    await subscription.close()
    await asyncio.wait_for(waiting, PATIENCE)
    await subscription.close()
    assert await subscription.next(PATIENCE) is None


async def test_a_slow_subscriber_holds_up_nobody(engine: Engine) -> None:
    await engine.signals.subscribe("burst")
    listening = await engine.signals.subscribe("burst")
    async with asyncio.timeout(60):
        for number in range(5_000):
            await engine.signals.publish("burst", str(number))
    signal = await listening.next(PATIENCE)
    assert signal is not None
    assert signal.topic in ("burst", ANY_TOPIC)


async def test_publishing_to_nobody_is_fine(engine: Engine, clock: Clock) -> None:
    await engine.signals.publish("nobody", "listens")
    assert created(await engine.jobs.enqueue([a_job()], now=clock.now)) == [True]


# What the engine signals by itself


Act = Callable[[], Awaitable[object]]


async def an_enqueue(claimant: Claimant) -> Act:
    return lambda: claimant.engine.jobs.enqueue([a_job(queue="w")], now=claimant.clock.now)


async def a_promote(claimant: Claimant) -> Act:
    await claimant.engine.jobs.enqueue([a_job(queue="w", delay=1)], now=claimant.clock.now)
    claimant.clock.now += 1
    return lambda: claimant.engine.jobs.promote(now=claimant.clock.now)


async def a_release(claimant: Claimant) -> Act:
    run = await one_run(claimant)
    return lambda: claimant.release(run)


async def a_retire(claimant: Claimant) -> Act:
    child = Claimant(claimant.engine, claimant.clock, member=claimant.member)
    await one_run(child)
    return lambda: claimant.engine.jobs.retire(child.id, now=claimant.clock.now)


async def a_replay(claimant: Claimant) -> Act:
    run = await one_run(claimant)
    await claimant.complete(run)
    return lambda: claimant.engine.jobs.replay([run.id], token=new_id(), now=claimant.clock.now)


async def an_unblocking(claimant: Claimant) -> Act:
    parent = a_job(queue="parents")
    child = a_job(queue="w", after=(parent.id,))
    await claimant.engine.jobs.enqueue([parent, child], now=claimant.clock.now)
    run = await claimant.take_one("parents")
    return lambda: claimant.complete(run)


async def a_resume(claimant: Claimant) -> Act:
    await claimant.engine.jobs.enqueue([a_job(queue="w")], now=claimant.clock.now)
    await claimant.engine.queues.pause("w", now=claimant.clock.now)
    return lambda: claimant.engine.queues.resume("w", now=claimant.clock.now)


async def a_freed_permit(claimant: Claimant) -> Act:
    await configure(claimant.engine, "w", QueueOptions(concurrency=1), now=claimant.clock.now)
    run = await one_run(claimant)
    await claimant.engine.jobs.enqueue([a_job(queue="w")], now=claimant.clock.now)
    return lambda: claimant.complete(run)


async def a_wider_limit(claimant: Claimant) -> Act:
    await a_freed_permit(claimant)
    options = QueueOptions(concurrency=1_000)
    return lambda: configure(claimant.engine, "w", options, now=claimant.clock.now)


async def one_run(claimant: Claimant) -> ClaimedJob:
    """Everything that is ready is taken; one of it."""
    await claimant.engine.jobs.enqueue([a_job(queue="w")], now=claimant.clock.now)
    return (await claimant.take("w"))[-1]


@pytest.mark.row("C5")
@pytest.mark.parametrize(
    "prepare",
    [
        an_enqueue,
        a_promote,
        a_release,
        a_retire,
        a_replay,
        an_unblocking,
        a_resume,
        a_freed_permit,
        a_wider_limit,
    ],
)
async def test_claimable_jobs_are_signalled(
    connect: Connect, clock: Clock, prepare: Callable[[Claimant], Awaitable[Act]]
) -> None:
    """Whatever makes something claimable in a queue wakes those who wait for that queue, everywhere."""
    engine, waiting = await connect(), await connect()
    claimant = await a_claimant(engine, clock)
    topic = ready_topic("w")
    for _ in range(TRIES):
        act = await prepare(claimant)
        subscription = await waiting.signals.subscribe(topic)
        while await subscription.next(QUIET):  # what the preparation told passes by
            pass
        await act()
        while (signal := await subscription.next(PATIENCE)) is not None:
            if signal.topic == topic:
                return
    raise AssertionError("no signal was received")


@pytest.mark.row("B11")
async def test_the_member_of_a_cancelled_run_is_signalled(connect: Connect, clock: Clock) -> None:
    engine, operator = await connect(), await connect()
    claimant = await a_claimant(engine, clock)
    topic = member_topic(claimant.member.id)
    subscription = await engine.signals.subscribe(topic)

    async def cancel() -> None:
        await engine.jobs.enqueue([a_job(timeout=SECOND)], now=clock.now)
        run = await claimant.take_one()
        await operator.jobs.cancel([run.id], now=clock.now)

    assert await receives(subscription, topic, cancel)
