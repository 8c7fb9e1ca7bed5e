"""The calls that an engine object has under way on its loop."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from tidemill.model.errors import EngineClosed, SingleProcess

T = TypeVar("T")


class InFlight:
    """Sees calls through, and refuses those that could not be answered. A store is one of these."""

    def __init__(self, url: object) -> None:
        self._shown = url
        self._pid = os.getpid()
        self._closed = False
        self._under_way: set[asyncio.Task[Any]] = set()

    def check(self) -> None:
        """Refuse what could not be answered."""
        if self._closed:
            raise EngineClosed(f"{self._shown} was closed by this process; open it again")
        if os.getpid() != self._pid:
            raise SingleProcess(
                f"{self._shown} was opened before this process was forked; open it again here"
            )

    async def see_through(self, work: Coroutine[Any, Any, T]) -> T:
        """See a call through, also if its caller is cancelled meanwhile: it may have been applied."""
        try:
            self.check()
        except BaseException:
            work.close()
            raise
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.spawn(_see_to_it(work, answer))
        return await answer

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Begin something that `finish` waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def finish(self) -> None:
        """Take no more calls, and finish those already made."""
        self._closed = True
        while self._under_way:
            await asyncio.wait(set(self._under_way))


async def _see_to_it(work: Coroutine[Any, Any, T], answer: "asyncio.Future[T]") -> None:
    """Give the answer of some work to the caller, if it still waits. (`asyncio.shield` does the same a turn
    of the loop later.)"""
    try:
        result = await work
    except asyncio.CancelledError:
        answer.cancel()
        raise
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
        elif not isinstance(error, Exception):
            raise
    else:
        if not answer.done():
            answer.set_result(result)
