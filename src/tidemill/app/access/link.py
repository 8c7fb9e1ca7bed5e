"""The way from any thread or loop to the engine.

An engine belongs to the loop that opened it. Async calls on a loop that has one of its own (`loops`) use it
directly. Every other call, blocking or async, goes through the portal: one thread, one loop, one engine for
the whole process, opened by the first call. After a fork the child has none of these (threads do not survive
a fork, and connections must not be shared); it makes its own with its first call.
"""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

from tidemill.app.access.answer import BlockingAnswer, run_on
from tidemill.app.access.loops import Loops
from tidemill.app.access.portal import Portal
from tidemill.app.access.session import EngineSession
from tidemill.app.enqueueing.producer import PATIENCE_S, Producer
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.locked import locked
from tidemill.engine.protocol import Engine, TransactionsFacet
from tidemill.engine.registry import connect
from tidemill.model.errors import (
    EngineClosed,
    EngineFull,
    EngineUnavailable,
    NoTransaction,
    Refused,
    SyncInLoop,
)
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob, Stored

T = TypeVar("T")
Work = Callable[[EngineSession], Coroutine[Any, Any, T]]

IN_MEMORY = "sqlite://"
LAST_EVENTS_S = 2.0
"""How long the last events of a program that was not closed may hold up its end."""


class Link:
    """The engine of one app, wherever it is called from."""

    def __init__(self, url: str, namespace: str) -> None:
        # Nameless memory belongs to one engine object alone; the portal and an embedded worker have one
        # each and must have the same URL.
        self.url = f"{IN_MEMORY}?name={new_id().hex()}" if url == IN_MEMORY else url
        self.namespace = namespace
        self._start_over()
        _links.add(self)

    def _start_over(self) -> None:
        self._lock = threading.RLock()
        self._portal: Portal | None = None
        self._session: EngineSession | None = None
        self.loops = Loops(self.open_engine)

    def wait(self, name: str, work: Work[T]) -> T:
        """Do some work and block until it is done. `name` is that of the blocking method."""
        refuse_in_loop(name)
        return self._answer(work).result()

    async def run(self, work: Work[T]) -> T:
        """Do some work from a running loop."""
        if (here := self.loops.here()) is not None:
            let_go = self.loops.hold(here)
            try:
                return await work(here)
            finally:
                await let_go()
        return await asyncio.wrap_future(self._submit(work))

    def enqueue(self, jobs: Sequence[NewJob]) -> "Future[list[Stored]]":
        """Hand over new jobs from any thread; merged with what others hand over now."""
        answer: Future[list[Stored]] = Future()
        self._shared().producer.put(jobs, answer)
        return answer

    def enqueue_here(self, jobs: Sequence[NewJob]) -> list[Stored]:
        """Enqueue and wait, in this thread if the engine can."""
        engine = self._shared().open_engine_or_none
        if engine is not None and engine.blocking is not None:
            began = time.monotonic()
            try:
                return engine.blocking.enqueue(jobs)
            except EngineFull:
                raise
            except EngineUnavailable:
                if time.monotonic() - began > PATIENCE_S:
                    raise
                # else the producer tries again: ids make that harmless
        answer: BlockingAnswer[list[Stored]] = BlockingAnswer()
        self._shared().producer.put(jobs, answer)
        return answer.result()

    def producer(self) -> Producer:
        """The way of new jobs from the running loop. Hand them over before the next await: an `async with
        app:` may end in it, and takes along only what it was given."""
        return (self.loops.here() or self._shared()).producer

    async def aenqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        """Enqueue from a running loop."""
        return await self.producer().hand_over(jobs)

    def transactions(self, name: str) -> TransactionsFacet:
        """The facet whose scripts run on a connection of the caller's; from any thread without a loop. If
        the engine is open already, no other thread is needed: a script does no I/O."""
        refuse_in_loop(name)
        session = self._session
        engine = session.open_engine_or_none if session is not None else None
        return _facet_of(engine or self._answer(_engine_of).result())

    async def atransactions(self) -> TransactionsFacet:
        """The same from a running loop."""
        session = self.loops.here() or self._session
        engine = session.open_engine_or_none if session is not None else None
        if engine is None:
            engine = await self.run(_engine_of)
        return _facet_of(engine)

    def move(self, url: str, namespace: str) -> None:
        """Use another URL and namespace; only before the first call."""
        if self._session is not None and (url, namespace) != (self.url, self.namespace):
            raise Refused("the engine is in use already")
        self.url, self.namespace = url, namespace

    def close(self) -> None:
        """Let go of the engine and end the thread. The next call begins anew."""
        refuse_in_loop("close")
        portal, session = locked(self._lock, self._leave_portal)
        if portal is not None:
            if session is not None:
                portal.submit(session.close).result()
            portal.close()
            if session is not None:  # threads that were just about to hand something over
                session.producer.refuse_all()

    def send_last_events(self) -> None:
        """The program ends, and the app was not closed: its last events may not have been emitted yet."""
        portal, session = self._portal, self._session
        engine = session.open_engine_or_none if session is not None else None
        busy = isinstance(engine, EmittingEngine) and engine.emitter.busy
        if busy and portal is not None and session is not None:
            self._portal = self._session = None  # whatever is called now begins anew
            with suppress(Exception):  # no caller is left to report it to
                portal.submit(session.close).result(LAST_EVENTS_S)

    def _submit(self, work: Work[T]) -> "Future[T]":
        session = self._shared()

        async def go() -> T:
            await session.opened()
            return await work(session)

        coroutine = go()
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, session.loop)
        except BaseException as error:  # closed by another thread in this moment, or interrupted
            coroutine.close()
            if isinstance(error, RuntimeError):
                raise EngineClosed("the app was closed by another thread") from None
            raise

    def _answer(self, work: Work[T]) -> BlockingAnswer[T]:
        session = self._shared()

        async def go() -> T:
            await session.opened()
            return await work(session)

        try:
            return run_on(session.loop, go)
        except RuntimeError:
            raise EngineClosed("the app was closed by another thread") from None

    def _shared(self) -> EngineSession:
        """The session of the portal. Nothing is waited for here: it opens with its first call."""
        return self._session or locked(self._lock, self._start_portal)

    def _start_portal(self) -> EngineSession:
        if self._session is None:
            self._portal = Portal()
            self._session = EngineSession(self._portal.loop, self.open_engine)
        return self._session

    def _leave_portal(self) -> tuple[Portal | None, EngineSession | None]:
        left = self._portal, self._session
        self._portal = self._session = None
        return left

    async def open_engine(self) -> Engine:
        """Another engine on the same URL, for the running loop."""
        return EmittingEngine(await connect(self.url, namespace=self.namespace))

    def _after_fork(self) -> None:
        self._start_over()


async def _engine_of(session: EngineSession) -> Engine:
    return session.engine


def _facet_of(engine: Engine) -> TransactionsFacet:
    if engine.transactions is None:
        raise NoTransaction(
            f"{engine.name} has no transactions that a connection of yours could be in: transaction= needs "
            "PostgreSQL, or SQLite in a file"
        )
    return engine.transactions


def refuse_in_loop(name: str) -> None:
    """A blocking call on an event loop's thread would stop everything on that loop."""
    if asyncio._get_running_loop() is not None:
        raise SyncInLoop(f"{name}() blocks, and an event loop runs in this thread: use `await a{name}(...)`")


_links: WeakSet[Link] = WeakSet()


def _after_fork() -> None:
    for link in list(_links):
        link._after_fork()


def _at_exit() -> None:
    for link in list(_links):
        link.send_last_events()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
