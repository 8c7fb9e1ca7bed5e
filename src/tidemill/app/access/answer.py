"""What a thread waits for: a result or an error, set by a loop in another thread.

A `concurrent.futures.Future` has a lock that both sides take, by a context manager in Python. If Ctrl-C comes
at that moment in the waiting thread, the lock stays locked (`engine.locked` says why). Then the loop waits
for ever to set the result, and with the loop every other call of the process. Here nothing can stay locked:
the two sides share a `SimpleQueue`, which is written in C.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class BlockingAnswer(Generic[T]):
    """Set once, by any thread; waited for by one."""

    def __init__(self) -> None:
        self._result: T | None = None
        self._error: BaseException | None = None
        self._answered = False
        self._wake_up: SimpleQueue[None] = SimpleQueue()

    def set_result(self, result: T) -> None:
        self._result = result
        self._set()

    def set_exception(self, exception: BaseException) -> None:
        self._error = exception
        self._set()

    def result(self, timeout_s: float | None = None) -> T:
        """Wait for it. `queue.Empty` if it does not come in time."""
        if not self._answered:
            self._wake_up.get(timeout=timeout_s)
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def _set(self) -> None:
        self._answered = True  # first: a caller interrupted after `get` finds it here when it waits again
        self._wake_up.put(None)


def run_on(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> BlockingAnswer[T]:
    """Run a coroutine on the loop of another thread. RuntimeError if the loop was closed."""
    answer: BlockingAnswer[T] = BlockingAnswer()

    def done(task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            answer.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(task.result())

    loop.call_soon_threadsafe(lambda: loop.create_task(work()).add_done_callback(done))
    return answer
