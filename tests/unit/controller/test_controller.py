"""One candidate at a time: elected, serving, handing over, stepping down."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from tests.unit.controller.ballots import LEASE_S, Faulty, Note, a_controller, an_election, held
from tidemill.controller import controller as module
from tidemill.controller.election import Election
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineClosed, EngineUnavailable
from tidemill.model.event import CONTROLLER_TOPIC
from tidemill.model.time import SECOND
from tidemill.model.view import CONTROLLER_LEASE

PATIENCE_S = 20
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = await connect("sqlite://")
    yield engine
    await engine.close()


@pytest.mark.row("D1")
async def test_the_elected_serves_and_hands_over_when_stopped(engine: Engine) -> None:
    tick = Note()
    controller = a_controller(engine, tick)
    signals = await engine.signals.subscribe(CONTROLLER_TOPIC)
    running = asyncio.create_task(controller.run())
    await tick.runs()
    (lease,) = await held(engine)
    assert (lease.name, lease.holder, lease.fence) == (CONTROLLER_LEASE, (b"\1" * 16).hex(), tick.fences[0])
    controller.stop()
    await running
    assert await held(engine) == []
    signal = await signals.next(PATIENCE_S)
    while signal is not None and signal.topic != CONTROLLER_TOPIC:
        signal = await signals.next(PATIENCE_S)
    assert signal is not None
    await signals.close()


@pytest.mark.row("D1")
async def test_a_cancelled_controller_hands_over_too(engine: Engine) -> None:
    """However impatiently."""
    tick = Note()
    running = asyncio.create_task(a_controller(engine, tick).run())
    await tick.runs()
    while not running.done():
        running.cancel()
        await asyncio.sleep(0)
    assert running.cancelled()
    assert await held(engine) == []


@pytest.mark.row("D1")
async def test_of_two_one_serves_and_the_other_takes_over_at_the_word(engine: Engine) -> None:
    first, second = Note(), Note()
    one, other = a_controller(engine, first, member=1), a_controller(engine, second, member=2)
    running = asyncio.create_task(one.run())
    await first.runs()
    standing = asyncio.create_task(other.run())
    await asyncio.sleep(0)
    one.stop()
    await running
    other.vacant()  # as its member does on a signal
    await asyncio.wait_for(second.runs(), PATIENCE_S)
    assert min(second.fences) > max(first.fences)
    other.stop()
    await standing


@pytest.mark.row("D1")
async def test_a_term_is_kept_by_renewing_it(engine: Engine) -> None:
    watched = Faulty(engine)
    election = an_election(cast(Engine, watched))
    term = await election.won()
    (first,) = await held(engine)
    holding = asyncio.create_task(election.hold(term))
    await watched.leases.called("renew", 8)
    assert await engine.now() > first.expires_at
    assert term.trusted()
    assert (await held(engine))[0].fence == first.fence
    holding.cancel()


@pytest.mark.row("D1")
async def test_whoever_lost_the_lease_steps_down_loudly(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    election = an_election(engine)
    term = await election.won()
    await engine.leases.release(CONTROLLER_LEASE, fence=term.fence)
    await engine.leases.acquire(CONTROLLER_LEASE, holder="another", ttl=60 * SECOND)
    await asyncio.wait_for(election.hold(term), PATIENCE_S)
    assert not term.trusted()
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(f"no longer the controller (term {term.fence})")


@pytest.mark.row("D1")
async def test_out_of_reach_it_steps_down_before_the_lease_is_over(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = Faulty(engine)
    election = an_election(cast(Engine, faulty))
    term = await election.won()
    (lease,) = await held(engine)
    faulty.leases.errors = [EngineUnavailable("away")] * 1_000
    await asyncio.wait_for(election.hold(term), PATIENCE_S)
    assert await engine.now() < lease.expires_at
    assert not term.trusted()
    assert "not renewed in time" in caplog.text
    assert faulty.leases.calls.count("renew") >= 3


async def test_a_short_failure_does_not_cost_the_term(engine: Engine) -> None:
    faulty = Faulty(engine)
    election = an_election(cast(Engine, faulty))
    term = await election.won()
    faulty.leases.errors = [EngineUnavailable("away")]
    holding = asyncio.create_task(election.hold(term))
    await faulty.leases.called("renew", 3)
    assert term.trusted()
    assert not holding.done()
    holding.cancel()


@pytest.mark.row("D1")
async def test_a_candidate_asks_rarely_while_another_serves(engine: Engine) -> None:
    """Once in a lease, and only by reading: not a busy loop."""
    faulty = Faulty(engine)
    await engine.leases.acquire(CONTROLLER_LEASE, holder="another", ttl=60 * SECOND)
    standing = asyncio.create_task(an_election(cast(Engine, faulty)).won())
    began = asyncio.get_running_loop().time()
    await faulty.leases.called("list", 3)
    assert asyncio.get_running_loop().time() - began >= 2 * LEASE_S
    assert set(faulty.leases.calls) == {"list"}
    standing.cancel()


async def test_a_candidate_goes_on_when_the_engine_is_back(engine: Engine) -> None:
    faulty = Faulty(engine)
    faulty.leases.errors = [EngineUnavailable("away"), EngineUnavailable("away")]
    assert (await asyncio.wait_for(an_election(cast(Engine, faulty)).won(), PATIENCE_S)).trusted()


async def test_an_own_lease_whose_answer_was_lost_is_taken_again(engine: Engine) -> None:
    election = an_election(engine)
    lost = await election.won()  # nobody holds it, and it is not over
    again = await asyncio.wait_for(election.won(), PATIENCE_S)
    assert again.fence == lost.fence
    assert again.trusted()


@pytest.mark.parametrize("error", [EngineUnavailable("away"), ValueError("a fault")], ids=["away", "fault"])
async def test_what_cannot_be_given_up_is_left_to_run_out(
    engine: Engine, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    faulty = Faulty(engine)
    election = an_election(cast(Engine, faulty))
    term = await election.won()
    faulty.leases.errors = [error]
    await election.give_up(term)
    assert not term.trusted()
    assert "will run out" in caplog.text


async def test_ticks_are_cancelled_when_the_term_is_lost(engine: Engine) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    slow, quick = Note(hang), Note()
    controller = a_controller(engine, slow, quick)
    running = asyncio.create_task(controller.run())
    await quick.runs()
    fence = quick.fences[-1]
    await engine.leases.release(CONTROLLER_LEASE, fence=fence)
    await engine.leases.acquire(CONTROLLER_LEASE, holder="another", ttl=SECOND // 2)
    slow.ran.clear()
    await asyncio.wait_for(slow.ran.wait(), PATIENCE_S)  # in its next term
    assert slow.fences == [fence, slow.fences[-1]]
    assert slow.fences[-1] > fence
    controller.stop()
    await running


async def test_a_tick_that_fails_takes_nothing_down(
    engine: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RUN_S", 0.02)

    def bug() -> None:
        raise ValueError("a bug")

    def away() -> None:
        raise EngineUnavailable("away")

    async def hang() -> None:
        await asyncio.Event().wait()

    ticks = [Note(bug), Note(away), Note(hang), Note()]
    for number, tick in enumerate(ticks):
        tick.name = f"n{number}"
    controller = a_controller(engine, *ticks)
    running = asyncio.create_task(controller.run())
    for tick in ticks:
        while len(tick.fences) < 3:
            await asyncio.wait_for(tick.runs(), PATIENCE_S)
    controller.stop()
    await running
    assert "the tick n0 failed" in caplog.text
    assert "the tick n2 was stopped" in caplog.text
    assert "n3" not in caplog.text


@pytest.mark.row("D1")
async def test_a_fault_in_the_election_takes_nothing_down(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither while standing nor while elected."""
    faulty, tick = Faulty(engine), Note()
    faulty.leases.errors = [ValueError("while standing")]
    controller = a_controller(cast(Engine, faulty), tick)
    running = asyncio.create_task(controller.run())
    await asyncio.wait_for(tick.runs(), PATIENCE_S)
    faulty.leases.errors = [ValueError("while elected")]
    asked = faulty.leases.calls.count("acquire")
    await asyncio.wait_for(faulty.leases.called("acquire", asked + 1), PATIENCE_S)
    await asyncio.wait_for(tick.runs(), PATIENCE_S)
    controller.stop()
    await asyncio.wait_for(running, PATIENCE_S)
    assert await held(engine) == []
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [str(record.exc_info[1]) for record in errors if record.exc_info] == [
        "while standing",
        "while elected",
    ]


async def test_a_closed_engine_ends_it() -> None:
    def closed() -> None:
        raise EngineClosed("closed")

    engine = await connect("sqlite://")
    with pytest.raises(EngineClosed):
        await asyncio.wait_for(a_controller(engine, Note(closed)).run(), PATIENCE_S)
    await engine.close()
    with pytest.raises(EngineClosed):
        await Election(engine, member=bytes(16), lease_s=1, heartbeat_s=0.1).won()
