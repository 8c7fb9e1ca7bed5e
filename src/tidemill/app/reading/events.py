"""`app.events(...)`: what happens to jobs, as it happens, for `for` and for `async for`.

The listener lives on the loop of an engine, wherever the reader is. Between the two is a bounded backlog. The
listener begins with the first step of the iteration or with the block. It ends with the block, with `close`,
with the app, or when the program has let go of the iterator. An engine that `async with app:` opened stays
open for it. If it uses a worker's engine and the worker ends, the iteration fails: it must not look like a
normal end.
"""

import asyncio
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tidemill.app.access.link import Link
from tidemill.app.access.loops import LetGo
from tidemill.app.access.session import EngineSession
from tidemill.app.reading.backlog import Backlog
from tidemill.engine.events.receiver import SEEN_AFTER_S, EventReceiver
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineClosed, SyncInLoop
from tidemill.model.event import Event, EventFilter, Gap
from tidemill.model.event_batch import Batch, events_of

Receiving = Callable[[EventReceiver], Coroutine[Any, Any, None]]

CLOSE_S = 5.0
"""How long ending the announcement may take in the engine; past that the announcement runs out by itself."""


class EventListener:
    """Receives events on the loop that makes it, and puts those that are wanted on a backlog."""

    def __init__(self, running: Coroutine[Any, Any, None], backlog: Backlog) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(running, name="tidemill events")
        self._task.add_done_callback(lambda task: _ended(task, backlog))
        self._stopped = False
        self.backlog = backlog

    @staticmethod
    async def start(
        engine: Engine, wanted: EventFilter, run: Receiving = EventReceiver.run
    ) -> "EventListener":
        """Announced, when this returns. `run` goes on until the receiver ends."""
        backlog = Backlog()

        def receive(found: Batch | Gap) -> None:
            backlog.put((found,) if isinstance(found, Gap) else events_of(found, wanted))

        receiver = EventReceiver(engine, receive)
        await receiver.open()
        return EventListener(run(receiver), backlog)

    def cancel(self) -> None:
        """Stop soon; from anywhere. Only once: a second time would interrupt the ending of the announcement,
        and emitters would see a listener until the lease is over."""
        if self._stopped:
            return
        self._stopped = True
        with suppress(RuntimeError):  # the loop was closed, and the task with it
            self._loop.call_soon_threadsafe(self._task.cancel)

    def drop(self) -> None:
        """Stop soon, and drop what was not read; from anywhere."""
        self.backlog.close()
        self.cancel()

    def close(self) -> None:
        """`drop`, and wait for the end where that can be waited for."""
        self.drop()
        if asyncio._get_running_loop() is not None:
            return
        ending = self._end()
        try:
            waiting = asyncio.run_coroutine_threadsafe(ending, self._loop)
        except RuntimeError:  # the loop was closed
            ending.close()
            return
        with suppress(TimeoutError, CancelledError):
            waiting.result(CLOSE_S)

    async def aclose(self) -> None:
        """`close` for async code."""
        self.drop()
        if asyncio.get_running_loop() is self._loop:
            await self._end()
        else:
            await asyncio.to_thread(self.close)

    async def _end(self) -> None:
        await asyncio.wait({self._task}, timeout=CLOSE_S)


class Events:
    """An endless row of `Event`s and `Gap`s for one reader, `for` or `async for`.

    As a block (`with`, `async with`) it begins only when every process emits what it changes, a good second
    later: what happens in the block is emitted."""

    def __init__(self, link: Link, wanted: EventFilter) -> None:
        self._link = link
        self._wanted = wanted
        self._taken: deque[Event | Gap] = deque()
        self._listener: EventListener | None = None
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event | Gap:
        if not self._taken:
            _refuse_in_loop("for")
            self._taken.extend(self._begun().backlog.take())
        if (one := self._next()) is None:
            raise StopIteration
        return one

    def __enter__(self) -> Self:
        _refuse_in_loop("with")
        self._begun()
        time.sleep(SEEN_AFTER_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Gap:
        if not self._taken:
            self._taken.extend(await (await self._abegun()).backlog.atake())
        if (one := self._next()) is None:
            raise StopAsyncIteration
        return one

    async def __aenter__(self) -> Self:
        await self._abegun()
        await asyncio.sleep(SEEN_AFTER_S)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Listen no more; what was not read yet is dropped. From any thread: an iteration ends."""
        self._closed = True
        self._taken.clear()
        if self._listener is not None:
            self._listener.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        self._closed = True
        self._taken.clear()
        if self._listener is not None:
            await self._listener.aclose()

    def _next(self) -> Event | Gap | None:
        """The next of what was taken; None: the end. Another thread may close us between any two steps."""
        try:
            one = self._taken.popleft()
        except IndexError:
            return None
        if self._closed:
            self._taken.clear()
            return None
        return one

    def _begun(self) -> EventListener:
        return self._listener or self._link.wait("events", self._start)

    async def _abegun(self) -> EventListener:
        if (listener := self._listener) is not None:
            return listener
        return await self._link.run(self._start)

    async def _start(self, session: EngineSession) -> EventListener:
        """On the engine's loop, also to its end: the caller that waits for it may be interrupted at any
        moment, and a listener that no object holds would listen for ever."""
        if self._closed:
            raise EngineClosed("these events were closed: call app.events() again")
        loops = self._link.loops

        def run(receiver: EventReceiver) -> Coroutine[Any, Any, None]:
            return _run(receiver, session, loops.hold(session))  # held before it has begun

        listener = await EventListener.start(session.engine, self._wanted, run)
        if (first := self._listener) is not None:  # of a try whose waiting was interrupted
            listener.drop()
            return first
        weakref.finalize(self, listener.cancel).atexit = False  # a reader who just went away
        self._listener = listener
        if self._closed:  # meanwhile, by a caller that did not see the listener
            listener.drop()
        return listener


async def _run(receiver: EventReceiver, session: EngineSession, let_go: LetGo) -> None:
    try:
        await receiver.run()
    finally:
        await let_go()
    if session.brought:
        raise EngineClosed("the worker whose engine received these events has ended: call app.events() again")


def _ended(task: "asyncio.Task[None]", backlog: Backlog) -> None:
    error = None if task.cancelled() else task.exception()
    backlog.end(error)


def _refuse_in_loop(word: str) -> None:
    if asyncio._get_running_loop() is not None:
        raise SyncInLoop(
            f"`{word}` over events blocks, and an event loop runs in this thread: use `async {word}`"
        )
