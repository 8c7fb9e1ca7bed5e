"""Waiting for "there is something to do", with a limit: one waiter, many who ring.

`asyncio.Event` under `wait_for` builds a task for every wait; this is one future and one timer. Ringing a
bell that was rung already costs an attribute. A ring is remembered until the next wait."""

import asyncio


class Wakeup:
    """Rung on its loop only; from a thread use `call_soon_threadsafe(bell.ring)`."""

    def __init__(self) -> None:
        self.rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """There is something to do."""
        if not self.rung:
            self.rung = True
            self._wake()

    async def wait(self, timeout_s: float | None) -> None:
        """Return when rung, or after the timeout."""
        if not self.rung and (timeout_s is None or timeout_s > 0):
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = None if timeout_s is None else loop.call_later(timeout_s, self._wake)
            try:
                await self._waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self.rung = False

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
