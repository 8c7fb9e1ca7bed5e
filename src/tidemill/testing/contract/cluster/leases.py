"""`leases`: named leases with a fence."""

import asyncio

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.time import SECOND
from tidemill.model.view import Lease
from tidemill.testing.contract.fixtures import Clock, Connect

TTL = 15 * SECOND


async def acquire(engine: Engine, clock: Clock, holder: str, name: str = "controller") -> Lease | None:
    return await engine.leases.acquire(name, holder=holder, ttl=TTL, now=clock.now)


async def taken(engine: Engine, clock: Clock, holder: str, name: str = "controller") -> Lease:
    lease = await acquire(engine, clock, holder, name)
    assert lease is not None
    return lease


@pytest.mark.row("D1")
async def test_one_holds_it_and_the_others_do_not(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    lease = await taken(one, clock, "a")
    assert (lease.name, lease.holder, lease.expires_at) == ("controller", "a", clock.now + TTL)
    assert await acquire(other, clock, "b") is None
    assert await other.leases.list(now=clock.now) == [lease]


async def test_names_are_independent(engine: Engine, clock: Clock) -> None:
    one, two = await taken(engine, clock, "a", "y"), await taken(engine, clock, "b", "x")
    assert one.fence != two.fence
    assert await engine.leases.list(now=clock.now) == [two, one]


async def test_the_same_holder_keeps_its_fence(engine: Engine, clock: Clock) -> None:
    first = await taken(engine, clock, "a")
    clock.forward(10)
    again = await taken(engine, clock, "a")
    assert (again.fence, again.expires_at) == (first.fence, clock.now + TTL)


@pytest.mark.row("D1")
async def test_a_ttl_that_is_over_frees_it_under_a_higher_fence(engine: Engine, clock: Clock) -> None:
    first = await taken(engine, clock, "a")
    clock.now += TTL - 1
    assert await acquire(engine, clock, "b") is None
    clock.now += 1
    assert await engine.leases.list(now=clock.now) == []
    second = await taken(engine, clock, "b")
    assert second.fence > first.fence
    assert not await engine.leases.renew("controller", fence=first.fence, ttl=TTL, now=clock.now)
    assert not await engine.leases.release("controller", fence=first.fence, now=clock.now)
    assert await engine.leases.list(now=clock.now) == [second]


async def test_renewing_prolongs_from_now(engine: Engine, clock: Clock) -> None:
    lease = await taken(engine, clock, "a")
    for _ in range(5):
        clock.forward(10)
        assert await engine.leases.renew("controller", fence=lease.fence, ttl=TTL, now=clock.now)
    (held,) = await engine.leases.list(now=clock.now)
    assert (held.fence, held.expires_at) == (lease.fence, clock.now + TTL)


async def test_what_ran_out_is_not_renewed(engine: Engine, clock: Clock) -> None:
    lease = await taken(engine, clock, "a")
    clock.now += TTL
    assert not await engine.leases.renew("controller", fence=lease.fence, ttl=TTL, now=clock.now)
    assert await engine.leases.list(now=clock.now) == []


async def test_a_holder_that_ran_out_gets_a_fresh_fence(engine: Engine, clock: Clock) -> None:
    first = await taken(engine, clock, "a")
    clock.now += TTL
    assert (await taken(engine, clock, "a")).fence > first.fence


async def test_a_released_lock_is_free_at_once(engine: Engine, clock: Clock) -> None:
    first = await taken(engine, clock, "a")
    assert await engine.leases.release("controller", fence=first.fence, now=clock.now)
    assert not await engine.leases.release("controller", fence=first.fence, now=clock.now)
    assert not await engine.leases.renew("controller", fence=first.fence, ttl=TTL, now=clock.now)
    assert (await taken(engine, clock, "b")).fence > first.fence


async def test_unknown_locks_are_not_held(engine: Engine, clock: Clock) -> None:
    assert not await engine.leases.renew("nothing", fence=1, ttl=TTL, now=clock.now)
    assert not await engine.leases.release("nothing", fence=1, now=clock.now)
    assert await engine.leases.list(now=clock.now) == []


@pytest.mark.row("D1")
async def test_a_race_has_one_winner(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(4)]
    fence = 0
    for round_number in range(5):
        racers = [acquire(client, clock, f"{round_number}-{n}") for n, client in enumerate(clients)]
        (winner,) = [lease for lease in await asyncio.gather(*racers) if lease]
        assert winner.fence > fence
        fence = winner.fence
        clock.now += TTL
