"""Results are awaited by signal.

`watch` tells the engine who waits and answers the present state in one step, so nothing can end unseen in
between. The signal is only a hint: every job that is waited for is also polled, first after 50 ms and then
every two seconds. All who wait in this process share one waiter, one subscription and one poll.
"""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

from tidemill.engine.protocol import BATCH_LIMIT, Engine, Subscription
from tidemill.model.errors import EngineClosed, EngineUnavailable
from tidemill.model.event import waiter_topic
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import LIVE, JobRecord
from tidemill.model.time import SECOND

WATCHED_FOR = 60 * SECOND
"""How long the engine remembers us; every poll prolongs it."""
FIRST_POLL_S, LONGEST_POLL_S = 0.05, 2.0
"""The pause between two polls doubles from the first to the second."""


class Waiter:
    """Everyone in this process who waits for a job to end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._name = new_id().hex()
        self._waiting: defaultdict[JobId, set[asyncio.Future[JobRecord | None]]] = defaultdict(set)
        self._unread: set[JobId] = set()
        """Jobs to read now: new ones, and those that a signal named."""
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: Subscription | None = None

    async def ended(self, job: JobId) -> JobRecord | None:
        """The record of a job once it has ended; None if the engine does not know it."""
        future: asyncio.Future[JobRecord | None] = asyncio.get_running_loop().create_future()
        self._waiting[job].add(future)
        self._unread.add(job)
        self._wake.set()
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._to_the_end(self._poll())),
                asyncio.create_task(self._to_the_end(self._listen())),
            ]
        try:
            return await future
        finally:
            self._waiting[job].discard(future)
            if not self._waiting[job]:
                del self._waiting[job]

    def stop(self) -> None:
        """Callers that still wait get an `EngineClosed`. To be called on the loop."""
        for futures in list(self._waiting.values()):
            for future in futures:
                if not future.done():
                    future.set_exception(EngineClosed("closed while a result was awaited; the job goes on"))
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Stop, and listen no more."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listening is not None:
            await self._listening.close()

    async def _to_the_end(self, loop: Coroutine[Any, Any, None]) -> None:
        """Run one of the loops; if it breaks, no caller is left waiting."""
        try:
            await loop
        except Exception as error:
            for futures in list(self._waiting.values()):
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
            for task in self._tasks:
                if task is not asyncio.current_task():
                    task.cancel()
            self._tasks = []

    async def _listen(self) -> None:
        self._listening = await self._engine.signals.subscribe(waiter_topic(self._name))
        while True:
            signal = await self._listening.next()
            if signal is None:
                return
            try:
                self._unread.add(bytes.fromhex(signal.text))
            except ValueError:
                self._unread.update(self._waiting)  # "something may have changed": read all of them
            self._wake.set()

    async def _poll(self) -> None:
        pause_s = FIRST_POLL_S
        while True:
            try:
                async with asyncio.timeout(pause_s if self._waiting else None):
                    await self._wake.wait()
                pause_s = FIRST_POLL_S
                ids = [job for job in self._unread if job in self._waiting]
            except TimeoutError:
                pause_s = min(pause_s * 2, LONGEST_POLL_S)
                ids = list(self._waiting)
            self._wake.clear()
            self._unread.clear()
            for start in range(0, len(ids), BATCH_LIMIT):
                await self._read(ids[start : start + BATCH_LIMIT])

    async def _read(self, ids: list[JobId]) -> None:
        try:
            jobs = await self._engine.jobs.watch(ids, waiter=self._name, ttl=WATCHED_FOR)
        except EngineUnavailable:
            return  # the next poll reads again
        for job_id, job in zip(ids, jobs, strict=True):
            if job is None or job.state not in LIVE:
                for future in self._waiting.get(job_id, ()):
                    if not future.done():
                        future.set_result(job)
