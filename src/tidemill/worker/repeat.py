"""The shape of every loop of a supervisor: a body that does one round and returns how long to wait."""

import asyncio
from collections.abc import Awaitable, Callable

from tidemill.worker.claiming.wakeup import Wakeup


async def repeat(
    do_round: Callable[[], Awaitable[float]], wake: Wakeup | None = None, *, gap_s: float = 0.0
) -> None:
    """Rounds for ever, one after the other, never two at once. `wake` cuts a wait short, but for `gap_s`
    after every round: a ring that comes in that time is remembered, and many make one round."""
    while True:
        delay_s = await do_round()
        if wake is None:
            await asyncio.sleep(delay_s)
        else:
            await asyncio.sleep(min(gap_s, delay_s))
            await wake.wait(delay_s - gap_s)
