"""Storing new jobs. Calls that come while one is on its way are merged into the next."""

import asyncio
from collections import deque
from collections.abc import Sequence

from penstock.engine.protocol import BATCH_LIMIT
from penstock.engines.redis.call import Call
from penstock.engines.redis.store import Store
from penstock.engines.redis.tail import plain
from penstock.model.errors import BadInput, PenstockError
from penstock.model.job import NewJob
from penstock.model.time import Instant

MERGED_BYTES = 16 << 20
"""Calls are merged up to about this size: the server reads a command whole, and others wait for it."""


LARGE = BATCH_LIMIT // 2
"""A call of so many jobs goes alone, and is packed when it comes: the server is busy with the one before."""


class _Waiting:
    """One caller's jobs."""

    __slots__ = ("answer", "bytes", "jobs", "now", "packed", "plain", "waits")

    def __init__(self, jobs: Sequence[NewJob], now: Instant | None) -> None:
        self.jobs = jobs
        self.now = now
        self.bytes = sum(len(job.body) + len(job.headers or b"") for job in jobs)
        self.plain = all(map(plain, jobs))
        self.waits = not self.plain and any(job.after for job in jobs)
        self.packed = _pack(jobs, plain=self.plain) if len(jobs) >= LARGE else None
        self.answer: asyncio.Future[list[bool]] = asyncio.get_running_loop().create_future()


class Enqueuer:
    """Calls in the order in which they came, one script at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: deque[_Waiting] = deque()
        self._at_work = False

    async def enqueue(self, jobs: Sequence[NewJob], now: Instant | None) -> list[bool]:
        """Store jobs that have been checked; True where created."""
        self._store.check()
        if not jobs:
            return []
        call = _Waiting(jobs, now)
        self._calls.append(call)
        self._begin()
        return await call.answer

    def _begin(self) -> None:
        if self._calls and not self._at_work:
            self._at_work = True
            self._store.spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._calls:
                await self._store_together(self._next())
        finally:
            self._at_work = False
            self._begin()  # whatever ended this one: those who came meanwhile wait for an answer

    def _next(self) -> list[_Waiting]:
        """The next calls that can go together: same clock, same form, no parents, within the bound."""
        first = self._calls.popleft()
        together, size, weight = [first], len(first.jobs), first.bytes
        while self._calls and not first.waits and first.packed is None:
            call = self._calls[0]
            weight += call.bytes
            too_many = size + len(call.jobs) > BATCH_LIMIT or weight > MERGED_BYTES
            alone = call.waits or call.packed is not None
            if alone or call.plain != first.plain or call.now != first.now or too_many:
                break
            together.append(self._calls.popleft())
            size += len(call.jobs)
        return together

    async def _store_together(self, waiting: list[_Waiting]) -> None:
        try:
            first = waiting[0]
            jobs = [job for each in waiting for job in each.jobs]
            call = first.packed or _pack(jobs, plain=first.plain)
            created = await self._store.send(self._store.enqueues, "enqueue", call, first.now)
        except PenstockError as error:
            if len(waiting) > 1 and isinstance(error, BadInput):  # only those that are to blame get the error
                for each in waiting:
                    await self._store_together([each])
            else:
                _fail(waiting, error)
            return
        except BaseException as error:
            _fail(waiting, error)
            raise
        if isinstance(created, int):  # all of them are new
            created = [1] * created
        start = 0
        for each in waiting:
            if not each.answer.done():
                each.answer.set_result([bool(one) for one in created[start : start + len(each.jobs)]])
            start += len(each.jobs)


def _pack(jobs: Sequence[NewJob], *, plain: bool) -> Call:
    """As `enqueue.lua` reads them."""
    call = Call()
    if plain:
        call.values["stretches"] = call.stretches(jobs)
    else:
        call.values["jobs"] = call.jobs(jobs)
    return call


def _fail(waiting: list[_Waiting], error: BaseException) -> None:
    for each in waiting:
        if not each.answer.done():
            each.answer.set_exception(error)
