"""Waits for "there is something to do", with a limit: one waiter, many who wake it.

`asyncio.Event` under `wait_for` builds a task for every wait. This is one future and one timer. To wake what
is woken already costs an attribute. A wake is remembered until the next wait.
"""

import asyncio


class Wakeup:
    """For use on its loop only; from a thread use `call_soon_threadsafe(wakeup.wake)`."""

    def __init__(self) -> None:
        self.woken = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """There is something to do."""
        if not self.woken:
            self.woken = True
            self._wake_waiter()

    async def wait(self, timeout_s: float | None) -> None:
        """Return when woken, or after the timeout."""
        if not self.woken and (timeout_s is None or timeout_s > 0):
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = None if timeout_s is None else loop.call_later(timeout_s, self._wake_waiter)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self.woken = False

    def _wake_waiter(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
