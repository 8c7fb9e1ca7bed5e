"""Concurrent enqueues merge into batches, from threads and from loops.

A call that finds nothing under way is sent at once. Those that come while a batch is on its way wait for
it and then go together: one statement and one commit for all of them, as far as they fit (`engine.merging`).
Calls stay whole and in order, so one producer's enqueues never overtake each other. If the engine refuses a
batch, its calls are sent one by one, and only the guilty one gets the error.

This is the only place where enqueues merge on their way to a server: one batch at a time is under way.

If the engine does not answer, the same batch is sent again: ids make that harmless. Only when that goes on
for too long does the caller get `EngineUnavailable`, and then it is not known whether the job was stored.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import NamedTuple, Protocol

from tidemill.engine.merging import StepRoom
from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, EngineClosed, EngineFull, EngineUnavailable, Refused
from tidemill.model.jobs.job import NewJob, Stored

REPEAT_AFTER_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Waits between repeats of a batch that the engine did not answer."""
PATIENCE_S = 5.0
"""No repeat after this: an engine that has waited long itself (for a lock, say) is not asked again."""


class EnqueueAnswer(Protocol):
    """A future of either kind, of this loop or of another thread."""

    def set_result(self, result: list[Stored], /) -> object: ...
    def set_exception(self, exception: BaseException, /) -> object: ...


class Enqueue(NamedTuple):
    """One call that waits for its answer."""

    jobs: Sequence[NewJob]
    answer: EnqueueAnswer


class Producer:
    """The way of new jobs to one engine."""

    def __init__(self, engine: Callable[[], Awaitable[Engine]], loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._calls: deque[Enqueue] = deque()
        self._woken = False
        self._closed = False
        self._sending: asyncio.Task[None] | None = None

    def hand_over(self, jobs: Sequence[NewJob]) -> "asyncio.Future[list[Stored]]":
        """From a running loop, the engine's own or another. They are under way when this returns."""
        if asyncio.get_running_loop() is not self._loop:
            elsewhere: Future[list[Stored]] = Future()
            self.put(jobs, elsewhere)
            return asyncio.wrap_future(elsewhere)
        answer: asyncio.Future[list[Stored]] = self._loop.create_future()
        self._calls.append(Enqueue(jobs, answer))
        self._wake()
        return answer

    def put(self, jobs: Sequence[NewJob], answer: EnqueueAnswer) -> None:
        """From any thread; the answer is given on the engine's loop."""
        self._calls.append(Enqueue(jobs, answer))
        if not self._woken:  # a wake-up that is on its way will find this call too
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop was closed
                self._refuse()
        elif self._closed:
            self._refuse()

    async def close(self) -> None:
        """Send what is waiting, and refuse what comes later. On the loop."""
        self._closed = True
        if self._sending is not None:
            await self._sending
        self._refuse()

    def refuse_all(self) -> None:
        """The loop is about to stop: whatever came too late is told so."""
        self._closed = True
        self._refuse()

    def _refuse(self) -> None:
        while self._calls:
            with suppress(IndexError):  # another thread took the last one
                _fail([self._calls.popleft()], EngineClosed("the app was closed: nothing was stored"))

    def _wake(self) -> None:
        self._woken = False
        if self._closed and self._sending is None:
            self._refuse()
        elif self._sending is None:
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._calls:
                await self._send_together(self._next())
        finally:
            self._sending = None

    def _next(self) -> list[Enqueue]:
        """Calls that go into one batch, at least one."""
        first = self._calls.popleft()
        if not self._calls:
            return [first]
        together, room = [first], StepRoom()
        room.put(first.jobs)
        while self._calls and room.take(self._calls[0].jobs):
            together.append(self._calls.popleft())
        return together

    async def _send_together(self, calls: list[Enqueue]) -> None:
        jobs = calls[0].jobs if len(calls) == 1 else [job for call in calls for job in call.jobs]
        try:
            stored = await self._repeated(jobs)
        except (BadInput, Refused) as error:
            if len(calls) == 1:
                _fail(calls, error)
            else:
                for call in calls:
                    await self._send_together([call])
        except asyncio.CancelledError:
            _fail(calls, EngineUnavailable("closed while an enqueue was on its way: it may be stored or not"))
            raise
        except Exception as error:
            _fail(calls, error)
        else:
            at = 0
            for call in calls:
                part = stored[at : at + len(call.jobs)]
                at += len(call.jobs)
                with suppress(asyncio.InvalidStateError, InvalidStateError):  # given up by its caller
                    call.answer.set_result(part)

    async def _repeated(self, jobs: Sequence[NewJob]) -> list[Stored]:
        began = self._loop.time()
        unanswered = False
        for wait_s in (*REPEAT_AFTER_S, None):
            try:
                return await (await self._engine()).jobs.enqueue(jobs)
            except EngineFull as error:
                if unanswered:  # this try changed nothing; the one before it may have
                    raise EngineUnavailable(f"the jobs may be stored or not: {error}") from error
                raise
            except EngineUnavailable:
                if wait_s is None or self._loop.time() - began > PATIENCE_S:
                    raise
                unanswered = True
                await asyncio.sleep(wait_s)
        raise AssertionError("the last try returns or raises")


def _fail(calls: list[Enqueue], error: Exception) -> None:
    for call in calls:
        with suppress(asyncio.InvalidStateError, InvalidStateError):
            call.answer.set_exception(error)
