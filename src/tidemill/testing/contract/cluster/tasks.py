"""`tasks`: the catalogue that workers publish."""

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.retry import Retry
from tidemill.model.time import SECOND
from tidemill.model.view import TaskEntry
from tidemill.testing.contract.fixtures import Clock, Connect


async def test_everything_is_kept(engine: Engine, clock: Clock) -> None:
    entry = TaskEntry(
        name="shop.mail:send",
        queue="mail",
        priority=0,
        timeout=30 * SECOND,
        retry=Retry(attempts=2, on=("builtins.OSError",)),
        key="to",
        schema=b'{"type":"object"}',
        on_dead="shop.mail:dead",
    )
    await engine.tasks.publish([entry, TaskEntry(name="a", queue="q")], now=clock.now)
    assert await engine.tasks.list() == [TaskEntry(name="a", queue="q"), entry]


async def test_an_entry_is_replaced_by_name(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    await one.tasks.publish([TaskEntry(name=name, queue="q", key="k") for name in "ba"], now=clock.now)
    await other.tasks.publish([TaskEntry(name="b", queue="r"), TaskEntry(name="c", queue="q")], now=clock.now)
    assert await one.tasks.list() == [
        TaskEntry(name="a", queue="q", key="k"),
        TaskEntry(name="b", queue="r"),
        TaskEntry(name="c", queue="q"),
    ]


async def test_an_empty_catalogue_and_an_empty_call(engine: Engine, clock: Clock) -> None:
    await engine.tasks.publish([], now=clock.now)
    assert await engine.tasks.list() == []


async def test_a_name_twice_in_one_call_leaves_the_last(engine: Engine, clock: Clock) -> None:
    await engine.tasks.publish(
        [TaskEntry(name="a", queue="1"), TaskEntry(name="a", queue="2")], now=clock.now
    )
    assert await engine.tasks.list() == [TaskEntry(name="a", queue="2")]
