"""The shape of every loop of a supervisor: a body that does one round and returns how long to wait."""

import asyncio
from collections.abc import Awaitable, Callable

from penstock.worker.bell import Bell


async def repeat(do_round: Callable[[], Awaitable[float]], wake: Bell | None = None) -> None:
    """Rounds for ever, one after the other, never two at once. `wake` cuts a wait short."""
    while True:
        delay_s = await do_round()
        if wake is None:
            await asyncio.sleep(delay_s)
        else:
            await wake.wait(delay_s)
