"""The shape of every loop of a supervisor: a body that does one round and returns how long to wait."""

import asyncio
from collections.abc import Awaitable, Callable

from tidemill.worker.claiming.wakeup import Wakeup


async def repeat(
    do_round: Callable[[], Awaitable[float]], wakeup: Wakeup | None = None, *, gap_s: float = 0.0
) -> None:
    """Rounds for ever, one after the other, never two at once. `wakeup` cuts a wait short, but not
    the first `gap_s` of it: a wake that comes in that time is remembered, and many wakes make one round."""
    while True:
        delay_s = await do_round()
        if wakeup is None:
            await asyncio.sleep(delay_s)
        else:
            await asyncio.sleep(min(gap_s, delay_s))
            await wakeup.wait(delay_s - gap_s)
