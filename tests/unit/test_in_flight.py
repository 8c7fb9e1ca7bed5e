"""Calls under way: answered, or seen through for nobody."""

import asyncio
import gc
from typing import Any

import pytest

from tidemill.engine.shared.calls.in_flight import InFlight
from tidemill.model.errors import EngineClosed, EngineUnavailable


async def work(until: asyncio.Event, end: list[str], error: BaseException | None = None) -> str:
    try:
        await until.wait()
    except asyncio.CancelledError:
        end.append("cancelled")
        raise
    end.append("done")
    if error is not None:
        raise error
    return "answer"


async def test_the_answer_comes_and_so_does_an_error() -> None:
    flight, now = InFlight("here"), asyncio.Event()
    now.set()
    assert await flight.see_through(work(now, [])) == "answer"
    with pytest.raises(EngineUnavailable):
        await flight.see_through(work(now, [], EngineUnavailable("gone")))


@pytest.mark.parametrize("error", [None, EngineUnavailable("gone")])
async def test_a_caller_that_is_cancelled_leaves_its_call_running(error: Exception | None) -> None:
    flight, until, end = InFlight("here"), asyncio.Event(), list[str]()
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    caller = asyncio.create_task(flight.see_through(work(until, end, error)))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled()
    assert end == []
    until.set()
    await flight.finish()
    assert end == ["done"]
    gc.collect()
    assert complaints == [], "nobody asks any more"


async def test_a_call_that_is_itself_cancelled_is_no_answer() -> None:
    flight, end = InFlight("here"), list[str]()
    caller = asyncio.create_task(flight.see_through(work(asyncio.Event(), end)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in list(flight._under_way):
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert end == ["cancelled"]


async def test_after_the_end_nothing_is_begun() -> None:
    flight, end, now = InFlight("here"), list[str](), asyncio.Event()
    now.set()
    await flight.finish()
    with pytest.raises(EngineClosed):
        await flight.see_through(work(now, end))
    assert end == []
