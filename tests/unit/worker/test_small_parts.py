"""Configuration, patience, bells, moments."""

import asyncio

import pytest

from tidemill.model.errors import BadInput
from tidemill.worker.backoff import Backoff, jittered
from tidemill.worker.claiming.wakeup import Wakeup
from tidemill.worker.config import SLOTS_LIMIT, WorkerConfig
from tidemill.worker.moments import Moments


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 0},
        {"slots": SLOTS_LIMIT + 1},
        {"processes": 0},
        {"heartbeat_s": 10.0, "lease_s": 10.0},
        {"heartbeat_s": 0.0},
        {"queues": ("a", "a")},
        {"queues": ("a b",)},
    ],
    ids=str,
)
def test_a_configuration_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        WorkerConfig(url="sqlite://", **wrong)  # type: ignore[arg-type]


def test_the_held_table_has_rows_for_everything_that_can_be_held() -> None:
    assert WorkerConfig(url="", slots=10).held_capacity == 40


def test_waits_double_up_to_a_bound_and_begin_again() -> None:
    backoff = Backoff(0.1, 1.0)
    waits = [backoff.next_s() for _ in range(8)]
    for wait, ceiling in zip(waits, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0], strict=True):
        assert ceiling / 2 <= wait <= ceiling
    backoff.reset()
    assert backoff.next_s() <= 0.1
    assert 0.75 <= jittered(1.0) <= 1.0


async def test_a_ring_is_remembered_until_the_next_wait() -> None:
    wakeup = Wakeup()
    wakeup.wake()
    wakeup.wake()
    await wakeup.wait(None)
    waiting = asyncio.ensure_future(wakeup.wait(None))
    await asyncio.sleep(0)
    assert not waiting.done()
    wakeup.wake()
    await waiting


async def test_a_wakeup_that_nobody_wakes_gives_up_waiting() -> None:
    await Wakeup().wait(0.001)
    await Wakeup().wait(0)


async def test_a_wait_that_is_cancelled_leaves_the_wakeup_in_order() -> None:
    wakeup = Wakeup()
    waiting = asyncio.ensure_future(wakeup.wait(3_600))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    wakeup.wake()
    await wakeup.wait(None)


async def test_moments_are_counted_and_awaited() -> None:
    moments = Moments()
    await moments.reached("claimed", 0)
    waiting = asyncio.ensure_future(moments.reached("claimed", 3))
    gone = asyncio.ensure_future(moments.next("settled"))
    await asyncio.sleep(0)
    moments.note("claimed", 2)
    await asyncio.sleep(0)
    assert not waiting.done()
    gone.cancel()
    moments.note("claimed")
    await waiting
    moments.note("settled")
    assert (moments.count("claimed"), moments.count("settled"), moments.count("idle")) == (3, 1, 0)
