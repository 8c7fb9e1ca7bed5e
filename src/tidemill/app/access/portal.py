"""The thread with the loop that blocking calls go through.

Inside, Tidemill is async and exists once; `enqueue` is `aenqueue` run here. The thread starts with the first
call and is a daemon: it never keeps a program alive.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidemill.app.access.answer import BlockingAnswer, run_on

T = TypeVar("T")


class Portal:
    """One event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="tidemill-portal", daemon=True
        )
        self._thread.start()
        started.wait()

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> BlockingAnswer[T]:
        """Run a coroutine over there; from any thread."""
        return run_on(self.loop, work)

    def close(self) -> None:
        """Stop the loop and join the thread; what still runs there is cancelled."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.call_soon(started.set)
        try:
            self.loop.run_forever()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()
