"""`inspect.storage`: how much room the state takes."""

from tidemill.engine.protocol import Engine
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.storage import warnings_of
from tidemill.model.time import SECOND
from tidemill.model.view import TaskEntry
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, configure, snapshot, some_jobs


async def test_the_parts_are_all_there_is_largest_first(engine: Engine) -> None:
    found = await engine.inspect.storage()
    sizes = [part.bytes for part in found.parts]
    assert found.bytes == sum(sizes) > 0
    assert sizes == sorted(sizes, reverse=True)
    assert len({part.name for part in found.parts}) == len(found.parts)
    assert all((number or 0) >= 0 for part in found.parts for number in (part.rows, part.dead, part.free))


async def test_what_is_stored_takes_room(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue(some_jobs(1_000, body=b"x" * 1_000), now=clock.now)
    assert (await engine.inspect.storage()).bytes >= 1_000_000


async def test_everything_that_can_be_stored_is_measured(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.tasks.publish([TaskEntry(name="t", queue="q")], now=clock.now)
    await configure(engine, "q", QueueOptions(concurrency=2, rate=Rate(5)), now=clock.now)
    await engine.schedules.put([Schedule(name="s", timing=Every(seconds=60), job=a_job())], now=clock.now)
    await engine.jobs.enqueue([*some_jobs(3), a_job(delay=SECOND)], now=clock.now)
    await claimant.complete(*await claimant.take(most=1))
    assert (await engine.inspect.storage()).bytes > 0


async def test_a_read_changes_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    await claimant.complete(*await claimant.take(most=1))
    before = await snapshot(engine, clock)
    await engine.inspect.storage()
    assert await snapshot(engine, clock) == before


async def test_a_fresh_place_is_nothing_to_warn_of(engine: Engine) -> None:
    assert warnings_of(await engine.inspect.storage()) == []
