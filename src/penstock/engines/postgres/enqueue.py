"""Storing new jobs. Calls that come while one is on its way are merged into the next: with 50 callers that is
twenty times as many jobs a second as one statement each."""

import asyncio
from collections import deque
from collections.abc import Sequence

from penstock.engine.protocol import BATCH_LIMIT
from penstock.engines.postgres.arrays import job_arrays, parent_arrays, short_arrays
from penstock.engines.postgres.store import Store
from penstock.model.errors import BadInput, PenstockError
from penstock.model.job import NewJob
from penstock.model.time import Instant


class _Call:
    """One caller's jobs."""

    __slots__ = ("answer", "jobs", "now", "waits")

    def __init__(self, jobs: Sequence[NewJob], now: Instant | None) -> None:
        self.jobs = jobs
        self.now = now
        self.waits = any(job.after for job in jobs)
        self.answer: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()


class Enqueuer:
    """Calls in the order in which they came, one statement at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: deque[_Call] = deque()
        self._at_work = False

    async def enqueue(self, jobs: Sequence[NewJob], now: Instant | None) -> list[bool]:
        """Store jobs that have been checked; True where created."""
        self._store.check()
        if not jobs:
            return []
        call = _Call(jobs, now)
        self._calls.append(call)
        if not self._at_work:
            self._at_work = True
            self._store.spawn(self._work())
        return await call.answer

    async def _work(self) -> None:
        try:
            while self._calls:
                await self._store_together(self._next())
        finally:
            self._at_work = False

    def _next(self) -> list[_Call]:
        """The next calls that can go together: same clock, no parents, within the bound."""
        first = self._calls.popleft()
        together, size = [first], len(first.jobs)
        while self._calls and not first.waits:
            call = self._calls[0]
            if call.waits or call.now != first.now or size + len(call.jobs) > BATCH_LIMIT:
                break
            together.append(self._calls.popleft())
            size += len(call.jobs)
        return together

    async def _store_together(self, calls: list[_Call]) -> None:
        jobs = [job for call in calls for job in call.jobs]
        arrays = job_arrays(jobs) if calls[0].waits else short_arrays(jobs)
        parameters = [*arrays, *parent_arrays(jobs), calls[0].now, self._store.post.lead()]
        try:
            statement = self._store.sql("SELECT * FROM {schema}.enqueue_v1(" + _MARKS + ")")
            created, signals = await self._store.enqueues.row(statement, *parameters)
        except PenstockError as error:
            if len(calls) > 1 and isinstance(error, BadInput):  # only those that are to blame get the error
                for call in calls:
                    await self._store_together([call])
            else:
                _fail(calls[0], error)
                for call in calls[1:]:
                    _fail(call, error)
            return
        except BaseException as error:
            for call in calls:
                _fail(call, error)
            raise
        self._store.post.send(signals)
        start = 0
        for call in calls:
            if not call.answer.done():
                call.answer.set_result(created[start : start + len(call.jobs)])
            start += len(call.jobs)


_MARKS = ", ".join(f"${n}" for n in range(1, 22))


def _fail(call: _Call, error: BaseException) -> None:
    if not call.answer.done():
        call.answer.set_exception(error)
