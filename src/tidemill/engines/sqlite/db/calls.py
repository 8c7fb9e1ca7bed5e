"""Calls to a thread that owns a connection, and their answers."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.errors import EngineClosed
from tidemill.model.time import Instant

T = TypeVar("T")

Merge = Callable[[Step, list[Any]], list[Any]]
"""One operation for the items of several calls: their answers, in order."""


class ThreadCall(Generic[T]):
    """An operation that a thread waits for. `answered` is set once there is an answer or an error."""

    __slots__ = ("answer", "answered", "error", "item", "merge", "now", "size", "work")

    def __init__(
        self,
        work: Callable[[Any], T],
        now: Instant | None,
        merge: Merge | None = None,
        item: object = None,
        size: int = 1,
    ) -> None:
        self.work = work
        self.merge = merge
        self.item = item
        self.size = size
        self.now = now
        self.answer: T | None = None
        self.error: BaseException | None = None
        self.answered = False


class LoopCall(ThreadCall[T]):
    """An operation that a task of the running loop waits for."""

    __slots__ = ("future", "loop")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()


def _resolve(calls: list[LoopCall[Any]]) -> None:
    for call in calls:
        if call.future.done():  # the caller was cancelled meanwhile
            continue
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.answer)


def answer_calls(calls: Sequence[ThreadCall[Any]]) -> None:
    """They have their answers: wake those who wait on a loop. (A thread that waits checks by itself.)"""
    loops: dict[asyncio.AbstractEventLoop, list[LoopCall[Any]]] = {}
    for call in calls:
        call.answered = True
        if isinstance(call, LoopCall):
            loops.setdefault(call.loop, []).append(call)
    for loop, own in loops.items():
        with suppress(RuntimeError):  # its loop was closed: no caller waits any more
            loop.call_soon_threadsafe(_resolve, own)


class CallThread:
    """A thread that owns a connection and works off calls."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[LoopCall[Any] | None] = queue.SimpleQueue()
        self._failed: BaseException | None = None
        self._ended = False
        self._opened = threading.Event()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._opened.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed

    def put(self, call: LoopCall[Any]) -> None:
        if self._ended:
            raise EngineClosed("the engine's thread has ended; open the engine again")
        self._calls.put(call)

    def stop(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _main(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._failed = error
            return
        finally:
            self._opened.set()
        try:
            self._run()
        finally:
            self._shut()
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """No caller is left waiting: neither after a close, nor if a bug ended this thread."""
        self._ended = True
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                call.error = EngineClosed("the engine was closed before this call came up")
                answer_calls([call])

    def _open(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _shut(self) -> None:
        raise NotImplementedError
