"""Ending tasks for good."""

import asyncio
from typing import Any

CANCEL_AGAIN_S = 0.5


async def end(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel these tasks and wait until they have ended. A cancellation that comes together with an answer
    may be swallowed (by drivers, and by `asyncio.wait_for` before Python 3.12), so it is repeated."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_S)
