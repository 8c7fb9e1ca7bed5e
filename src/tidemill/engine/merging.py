"""Enqueues that come while one is on its way are merged into the next: with 50 callers that is twenty times
as many jobs a second as one step each. For engines whose steps are round trips.

Calls go in the order in which they came, one step at a time. (To pack the next call while the server is busy
with the one before gained nothing that could be told from the machine's own swings, and an order that holds
when the first of two fails is not to be had for nothing.)
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.engine.shared.in_flight import InFlight
from tidemill.model.errors import BadInput, TidemillError
from tidemill.model.job import NewJob
from tidemill.model.time import Instant

MERGED_BYTES = 16 << 20
"""Calls are merged up to about this size: the server reads a command whole, and others wait for it."""
ALONE = None
"""The form of calls that are not merged."""

P = TypeVar("P")


class _Call:
    """One caller's jobs."""

    __slots__ = ("answer", "bytes", "form", "jobs", "now")

    def __init__(self, jobs: Sequence[NewJob], now: Instant | None, form: Hashable) -> None:
        self.jobs = jobs
        self.now = now
        self.form = form
        self.bytes = sum(len(job.body) + len(job.headers or b"") for job in jobs)
        self.answer: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()


class Merging(Generic[P]):
    """The enqueues of one engine object.

    `form`: calls of the same form may go together; `ALONE`: this one may not. `pack`: jobs of one form as
    `send` takes them. `send`: one step; answers which were created."""

    def __init__(
        self,
        flight: InFlight,
        *,
        form: Callable[[Sequence[NewJob]], Hashable],
        pack: Callable[[Sequence[NewJob], Hashable], P],
        send: Callable[[P, Instant | None], Awaitable[Sequence[bool]]],
    ) -> None:
        self._flight = flight
        self._form = form
        self._pack = pack
        self._send = send
        self._calls: deque[_Call] = deque()
        self._at_work = False

    async def enqueue(self, jobs: Sequence[NewJob], now: Instant | None) -> list[bool]:
        """Store jobs that have been checked; True where created."""
        self._flight.check()
        if not jobs:
            return []
        call = _Call(jobs, now, self._form(jobs))
        self._calls.append(call)
        self._begin()
        return await call.answer

    def _begin(self) -> None:
        if self._calls and not self._at_work:
            self._at_work = True
            self._flight.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._calls:
                await self._store(self._next())
        finally:
            self._at_work = False
            self._begin()  # whatever ended this one: those who came meanwhile wait for an answer

    def _next(self) -> list[_Call]:
        """The next calls that can go together."""
        first = self._calls.popleft()
        together, size, weight = [first], len(first.jobs), first.bytes
        while self._calls and first.form is not ALONE:
            call = self._calls[0]
            size += len(call.jobs)
            weight += call.bytes
            if (
                call.form != first.form
                or call.now != first.now
                or size > BATCH_LIMIT
                or weight > MERGED_BYTES
            ):
                break
            together.append(self._calls.popleft())
        return together

    async def _store(self, calls: list[_Call]) -> None:
        first = calls[0]
        try:
            packed = self._pack([job for call in calls for job in call.jobs], first.form)
            created = await self._send(packed, first.now)
        except BadInput as error:
            if len(calls) > 1:  # only those that are to blame get the error
                for call in calls:
                    await self._store([call])
            else:
                _fail(calls, error)
            return
        except TidemillError as error:
            _fail(calls, error)
            return
        except BaseException as error:
            _fail(calls, error)
            raise
        start = 0
        for call in calls:
            if not call.answer.done():
                call.answer.set_result(list(created[start : start + len(call.jobs)]))
            start += len(call.jobs)


def _fail(calls: Sequence[_Call], error: BaseException) -> None:
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(error)
