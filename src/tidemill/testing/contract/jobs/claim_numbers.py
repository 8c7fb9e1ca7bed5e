"""`jobs.claim`: its numbers, which make a repeat harmless, and what is refused."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    snapshot,
    some_jobs,
)


async def test_a_repeated_number_returns_the_same_jobs(connect: Connect, clock: Clock) -> None:
    claimant = await a_claimant(await connect(), clock)
    await claimant.engine.jobs.enqueue(some_jobs(4), now=clock.now)
    request = claimant.request(most=2)
    first = await claimant.engine.jobs.claim(request, now=clock.now)
    clock.forward(1)
    again = await (await connect()).jobs.claim(request, now=clock.now)
    assert len(first.jobs) == 2
    assert again.jobs == first.jobs
    assert again.now == first.now + SECOND == clock.now
    assert (await claimant.engine.inspect.counts(now=clock.now))[0].running == 2


async def test_a_repeat_leaves_out_what_no_longer_runs(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    done, released, still = await claimant.take(most=3)
    await claimant.complete(done)
    await claimant.release(released)
    assert await claimant.take(most=3, number=1) == [still]


async def test_a_repeat_does_not_take_its_released_job_anew(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.release(await claimant.take_one())
    assert await claimant.take(number=1) == []
    assert len(await claimant.take(number=2)) == 1


async def test_a_lower_number_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await claimant.take(most=1, number=1)
    await claimant.take(most=1, number=5)
    before = await snapshot(engine, clock)
    for number in (1, 4):
        with pytest.raises(ClaimOutOfOrder):
            await claimant.take(most=1, number=number)
    assert await snapshot(engine, clock) == before


async def test_a_number_that_took_nothing_may_be_asked_again(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    assert await claimant.take(number=7) == []
    assert await claimant.take(number=6) == []
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert len(await claimant.take(number=6)) == 1


async def test_each_claimant_counts_for_itself(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    sibling = Claimant(engine, clock, member=claimant.member)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    assert (await claimant.take_one(number=9)).id != (await sibling.take_one(number=1)).id


async def test_a_claim_that_takes_nothing_changes_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(delay=SECOND)], now=clock.now)
    before = await snapshot(engine, clock)
    assert await claimant.take() == []
    assert await snapshot(engine, clock) == before


# Refusals


async def test_an_unknown_member_is_refused(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    stranger = Claimant(engine, clock)
    before = await snapshot(engine, clock)
    with pytest.raises(MemberGone):
        await stranger.claim()
    assert await snapshot(engine, clock) == before


async def test_a_retired_claimant_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await claimant.take(most=1)
    await engine.jobs.retire(claimant.id, now=clock.now)
    for number in (1, 2):
        with pytest.raises(ClaimantRetired):
            await claimant.claim(number=number)
    sibling = Claimant(engine, clock, member=claimant.member)
    assert len(await sibling.take()) == 2


async def test_a_claimant_retired_before_its_first_claim_is_refused(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert await engine.jobs.retire(claimant.id, now=clock.now) == 0
    clock.forward(3_599)
    await claimant.heartbeat()
    with pytest.raises(ClaimantRetired):
        await claimant.claim()


async def test_a_member_that_left_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await engine.members.leave(claimant.member.id, now=clock.now)
    with pytest.raises(Refused):
        await claimant.claim()
