"""`queues`: what apps declare, and what operators set over it."""

import asyncio
from typing import Any

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, QueueChanged, UnknownQueue
from tidemill.model.event import OPTIONS_TOPIC
from tidemill.model.member import HEARTBEAT
from tidemill.model.queues.layers import Declaration, Override
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.view import QueueInfo
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    a_job,
    snapshot,
    some_jobs,
)

EVERY_FIELD: dict[str, Any] = {
    "concurrency": 5,
    "rate": {"count": 100, "per": 60.0},
    "per_key": {"concurrency": 2, "rate": {"count": 50, "per": 10.0}},
    "limits": {"gold": {"concurrency": 9}},
    "per_worker": {"concurrency": 4},
    "fair_by": "key",
    "weights": {"gold": 3},
    "keep_dead": {"count": 0},
    "keep_body": False,
}


def said(at: int = START, **fields: Any) -> Declaration:
    return Declaration(fields=fields, declared_at=at)


async def the_queue(engine: Engine, name: str = "q") -> QueueInfo:
    return next(queue for queue in await engine.queues.list() if queue.name == name)


async def in_force(engine: Engine, name: str = "q") -> QueueOptions:
    return (await the_queue(engine, name)).options


# Declared


@pytest.mark.row("F17")
async def test_both_layers_are_listed_side_by_side(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(**EVERY_FIELD)}, now=clock.now)
    await engine.queues.declare("bill", {"q": said(START - 1, rate=None)}, now=clock.now)
    clock.forward(1)
    await engine.queues.override("q", {"concurrency": 3}, by="ann", why="the API is slow", now=clock.now)
    queue = await the_queue(engine)
    assert queue.declared == {"shop": said(**EVERY_FIELD), "bill": said(START - 1, rate=None)}
    assert queue.overrides == {
        "concurrency": Override(value=3, by="ann", why="the API is slow", at=clock.now)
    }
    assert (queue.options.concurrency, queue.options.rate) == (3, Rate(100, per=60.0))
    assert (queue.version, queue.problems) == (3, ())


async def test_a_declaration_makes_the_queue_and_a_repeat_changes_nothing(
    engine: Engine, clock: Clock
) -> None:
    await engine.queues.declare("shop", {"p": said(), "q": said(concurrency=5)}, now=clock.now)
    before = await snapshot(engine, clock)
    await engine.queues.declare("shop", {"p": said(), "q": said(concurrency=5)}, now=clock.now)
    assert await snapshot(engine, clock) == before
    assert [queue.name for queue in await engine.queues.list()] == ["p", "q"]
    assert await in_force(engine) == QueueOptions(concurrency=5)


async def test_a_field_that_the_code_names_no_more_goes_away(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(concurrency=5, fair_by="key")}, now=clock.now)
    await engine.queues.declare("shop", {"q": said(START + 1, fair_by="key")}, now=clock.now)
    assert await in_force(engine) == QueueOptions(fair_by="key")


async def test_an_older_start_does_not_bring_old_options_back(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=9)}, now=clock.now)
    before = await snapshot(engine, clock)
    await engine.queues.declare("shop", {"q": said(START, concurrency=5)}, now=clock.now)
    assert await snapshot(engine, clock) == before
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=8)}, now=clock.now)
    assert await in_force(engine) == QueueOptions(concurrency=8)


async def test_of_two_apps_the_later_start_counts_field_by_field(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(START + 5, concurrency=5, fair_by="key")}, now=clock.now)
    await engine.queues.declare("bill", {"q": said(START + 3, concurrency=9, keep_body=False)}, now=clock.now)
    assert await in_force(engine) == QueueOptions(concurrency=5, fair_by="key", keep_body=False)
    await engine.queues.declare("bill", {"q": said(START + 6, concurrency=None)}, now=clock.now)
    assert await in_force(engine) == QueueOptions(fair_by="key")


async def test_an_app_that_only_uses_a_queue_says_nothing_against_those_that_declare_it(
    engine: Engine, clock: Clock
) -> None:
    keep = {"keep_completed": {"count": 3}}
    uses = Declaration(defaults=keep, declares=False, declared_at=START + 9)
    await engine.queues.declare("bill", {"q": uses}, now=clock.now)
    assert (await in_force(engine)).keep_completed is not None
    await engine.queues.declare("shop", {"q": said(concurrency=5)}, now=clock.now)
    assert await in_force(engine) == QueueOptions(concurrency=5)


async def test_a_declaration_is_retired_unless_it_was_made_again(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(START, concurrency=5)}, now=clock.now)
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=5)}, now=clock.now)
    assert not await engine.queues.retire("q", "shop", declared_at=START, by="c", now=clock.now)
    assert not await engine.queues.retire("q", "bill", declared_at=START + 1, by="c", now=clock.now)
    assert await in_force(engine) == QueueOptions(concurrency=5)
    assert await engine.queues.retire("q", "shop", declared_at=START + 1, by="c", now=clock.now)
    assert not await engine.queues.retire("q", "shop", declared_at=START + 1, by="c", now=clock.now)
    assert (await the_queue(engine)).declared == {}
    assert await in_force(engine) == QueueOptions()
    with pytest.raises(UnknownQueue):
        await engine.queues.retire("nothing", "shop", declared_at=START, now=clock.now)


async def test_apps_that_declare_at_once_are_all_kept(connect: Connect, clock: Clock) -> None:
    engines = [await connect() for _ in range(4)]
    await asyncio.gather(
        *(
            engine.queues.declare(
                f"app{number}",
                {"p": said(START + number, concurrency=1 + number), "q": said()},
                now=clock.now,
            )
            for number, engine in enumerate(engines)
        )
    )
    queue = await the_queue(engines[0], "p")
    assert (sorted(queue.declared), queue.version) == (["app0", "app1", "app2", "app3"], 4)
    assert queue.options.concurrency == 4


# Overrides


@pytest.mark.row("F17")
async def test_an_override_survives_deploys_until_it_is_reset(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    await engine.queues.declare("shop", {"q": said(concurrency=5)}, now=clock.now)
    await engine.queues.override("q", {"concurrency": 2}, by="ann", now=clock.now)
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=7)}, now=clock.now)
    assert len(await claimant.take()) == 2
    await engine.queues.reset("q", ["concurrency"], by="ann", now=clock.now)
    assert len(await claimant.take()) == 5
    assert (await the_queue(engine)).overrides == {}


async def test_null_is_a_value(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    await engine.queues.declare("shop", {"q": said(concurrency=5)}, now=clock.now)
    await engine.queues.override("q", {"concurrency": None}, by="ann", now=clock.now)
    assert len(await claimant.take()) == 9
    assert (await the_queue(engine)).overrides["concurrency"].value is None


async def test_every_field_can_be_overridden_but_what_jobs_carry(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await engine.queues.override("q", EVERY_FIELD, now=clock.now)
    options = await in_force(engine)
    assert (options.per_key, options.weights) == (
        Limit(concurrency=2, rate=Rate(50, per=10.0)),
        {"gold": 3},
    )
    for field in ("timeout", "retry"):
        with pytest.raises(BadInput, match="when it is enqueued"):
            await engine.queues.override("q", {field: None}, now=clock.now)
    await engine.queues.reset("q", now=clock.now)
    assert await in_force(engine) == QueueOptions()


async def test_an_override_that_contradicts_is_refused(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(concurrency=5)}, now=clock.now)
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput, match="by key"):
        await engine.queues.override("q", {"weights": {"a": 2}}, by="ann", now=clock.now)
    assert await snapshot(engine, clock) == before
    await engine.queues.override("q", {"weights": {"a": 2}, "fair_by": "key"}, by="ann", now=clock.now)
    assert (await in_force(engine)).weights == {"a": 2}


async def test_a_declaration_that_makes_an_override_senseless_is_shown(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(fair_by="key")}, now=clock.now)
    await engine.queues.override("q", {"weights": {"a": 2}}, by="ann", now=clock.now)
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=5)}, now=clock.now)
    queue = await the_queue(engine)
    assert queue.options == QueueOptions(concurrency=5)
    assert len(queue.problems) == 1
    assert "weights" in queue.overrides
    await engine.queues.declare("shop", {"q": said(START + 2, fair_by="key")}, now=clock.now)
    queue = await the_queue(engine)
    assert (queue.options.weights, queue.problems) == ({"a": 2}, ())


async def test_a_change_of_what_was_read_is_refused_if_it_is_no_more_so(engine: Engine, clock: Clock) -> None:
    await engine.queues.declare("shop", {"q": said(concurrency=5)}, now=clock.now)
    version = (await the_queue(engine)).version
    await engine.queues.override("q", {"concurrency": 2}, by="ann", version=version, now=clock.now)
    with pytest.raises(QueueChanged):
        await engine.queues.override("q", {"concurrency": 3}, by="bob", version=version, now=clock.now)
    with pytest.raises(QueueChanged):
        await engine.queues.reset("q", by="bob", version=version, now=clock.now)
    await engine.queues.reset("q", by="bob", version=version + 1, now=clock.now)
    assert await in_force(engine) == QueueOptions(concurrency=5)


async def test_overrides_of_several_operators_at_once_are_all_kept(connect: Connect, clock: Clock) -> None:
    engines = [await connect() for _ in range(4)]
    await engines[0].jobs.enqueue([a_job()], now=clock.now)
    fields: list[tuple[str, Any]] = [
        ("concurrency", 2),
        ("fair_by", "key"),
        ("keep_body", False),
        ("per_worker", {"concurrency": 1}),
    ]
    await asyncio.gather(
        *(
            engine.queues.override("q", {name: value}, by=name, now=clock.now)
            for engine, (name, value) in zip(engines, fields, strict=True)
        )
    )
    queue = await the_queue(engines[0])
    assert {name: each.value for name, each in queue.overrides.items()} == dict(fields)
    assert queue.version == 4


# What others learn of it


async def test_a_heartbeat_shows_that_options_changed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    async def heartbeat() -> int:
        clock.now += HEARTBEAT
        return (await engine.members.heartbeat(claimant.member, now=clock.now)).options

    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await heartbeat()
    await engine.queues.declare("shop", {"q": said(START)}, now=clock.now)
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert await heartbeat() == first
    numbers = {first}
    await engine.queues.declare("shop", {"q": said(START, per_worker={"concurrency": 2})}, now=clock.now)
    numbers.add(await heartbeat())
    await engine.queues.override("q", {"per_worker": None}, now=clock.now)
    numbers.add(await heartbeat())
    await engine.queues.reset("q", now=clock.now)
    numbers.add(await heartbeat())
    await engine.queues.retire("q", "shop", declared_at=START, now=clock.now)
    numbers.add(await heartbeat())
    assert len(numbers) == 5


async def test_listeners_are_told_that_options_changed(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    await one.jobs.enqueue([a_job()], now=clock.now)
    listener = await other.signals.subscribe(OPTIONS_TOPIC)
    try:
        await one.queues.override("q", {"per_worker": {"concurrency": 2}}, now=clock.now)
        assert await listener.next(timeout=10) is not None
    finally:
        await listener.close()


async def test_a_declaration_that_changes_nothing_in_force_waits_for_no_claim(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """A restart says again what is so: lanes that are parked stay parked, and nothing is counted anew."""
    await engine.queues.declare("shop", {"q": said(concurrency=1)}, now=clock.now)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    run = await claimant.take_one()
    await engine.queues.declare("shop", {"q": said(START + 1, concurrency=1)}, now=clock.now)
    await engine.queues.override("q", {"concurrency": 1}, by="ann", now=clock.now)
    assert await claimant.take() == []
    await claimant.complete(run)
    assert len(await claimant.take()) == 1
    assert (await the_queue(engine)).version == 3
