"""Repeats a call to the engine until it is answered.

`EngineUnavailable` means "unknown". The contract answers a repeat of the same call, so the call is repeated,
with growing pauses, for as long as it takes. Only at the end, when this worker waits for nothing but the
answer, it gives up on an engine that is silent for `GIVE_UP_S`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidemill.model.errors import EngineUnavailable
from tidemill.worker.backoff import Backoff
from tidemill.worker.moments import Moments
from tidemill.worker.report import Report

GIVE_UP_S = 2.0

T = TypeVar("T")


class GaveUp(Exception):
    """The engine does not answer, and we have to end."""


class UntilAnswered:
    """`await until_answered(call)`. `leaving`: whether this worker waits for nothing but answers."""

    def __init__(self, moments: Moments, report: Report, *, leaving: Callable[[], bool]) -> None:
        self._moments = moments
        self._report = report
        self._leaving = leaving
        self._give_up_at: float | None = None

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer, or `GaveUp`."""
        backoff = Backoff()
        while True:
            try:
                answer = await call()
            except EngineUnavailable as error:
                self._report.unreachable(error)
                self._moments.note("retried")
                self._give_up_if_due(error)
                await asyncio.sleep(backoff.next_s())
            else:
                self._report.reachable()
                return answer

    def _give_up_if_due(self, error: EngineUnavailable) -> None:
        if not self._leaving():
            return
        now = asyncio.get_running_loop().time()
        if self._give_up_at is None:
            self._give_up_at = now + GIVE_UP_S
        elif now >= self._give_up_at:
            raise GaveUp from error
