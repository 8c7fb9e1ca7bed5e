"""Equal shares of queues with a concurrency.

The process that has just ended such a job is always the first to ask for the permit that this frees: one trip
carries the outcome there and the next job back. So one process would run all jobs of a queue whose limit is
below its slots, while the others wait. Therefore each process asks for its share first: the limit, divided by
the worker processes that take from the queue.

- Below its share a process asks at once.
- What the division leaves over goes round: a process that has such an odd permit keeps it for a turn of
  `TURN_S`, however many jobs that are. Then it waits for `YIELD_S`; the others ask the sooner after a signal
  the longer they have had none. (With a turn for every job, jobs of 5 ms would run at half the speed.)
- What the others leave is anybody's: a process that has its share asks for more `PATIENCE_S` after a signal.
  If it gets nothing, it asks again that long after the next one; if it gets some, it goes on for a turn.

How many processes take from a queue is known from the list of members, read every few heartbeats, and only by
those who have such a queue. A process that is new counts within that time. Nothing but evenness depends on
the number.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.member import Health, MemberRecord, detail_of
from tidemill.model.queues.queue import QueueOptions
from tidemill.worker.backoff import jittered

PATIENCE_S = 0.05
YIELD_S = 0.02
TURN_S = 0.1
_AGE_S = 0.1
AGAIN_S = 0.002
HEARTBEATS = 2.5
"""The list of members is read every so many heartbeats."""


class Share:
    """This process's share of one queue."""

    def __init__(self) -> None:
        self.limit = self.processes = 1
        self._had = 0  # here, as last seen
        self._turn_at: float | None = None  # since when it has had an odd permit
        self._odd_at = -1_000.0  # when it last gave one back
        self._ask_at: float | None = None  # when it asks for more than its share
        self._beyond_until = 0.0  # so long it asks for more without waiting
        self._dry = self._asked = self._beyond = False

    def room(self, here: int, now_s: float) -> int | None:
        """How many to ask for, with so many here; None: for all there are."""
        if self.processes <= 1:
            return None
        least, odd = divmod(self.limit, self.processes)
        if here <= least < self._had and odd:
            self._ended_odd(now_s)
        if here != self._had:  # it waits for something else now
            self._ask_at = None
        self._had = here
        if here < least:
            return least - here + bool(odd and self._turn_at is not None)
        if here == least and odd:
            return int(self._turn_at is not None or self._may_ask(here, now_s))
        if now_s < self._beyond_until:
            return None
        self._beyond = self._may_ask(here, now_s)
        return None if self._beyond else 0

    def came(self, jobs: int, now_s: float) -> None:
        """So many were claimed."""
        if self._beyond and jobs:
            self._beyond_until = now_s + TURN_S
        if self._asked:
            self._dry, self._ask_at = jobs == 0, None
        self._asked = self._beyond = False
        self._had += jobs
        if self._had > self.limit // self.processes and self._turn_at is None:
            self._turn_at = now_s
        if jobs and self.processes > 1:
            self._ask_at = now_s + self._wait(self._had, now_s)

    def opens_at(self) -> float | None:
        """When to ask again without a signal."""
        return None if self._dry else self._ask_at

    def _ended_odd(self, now_s: float) -> None:
        """A job under an odd permit ended."""
        if self._turn_at is not None and now_s - self._turn_at >= TURN_S:
            self._turn_at, self._odd_at, self._ask_at = None, now_s, None

    def _may_ask(self, here: int, now_s: float) -> bool:
        if self._ask_at is None or self._dry:
            self._ask_at, self._dry = now_s + self._wait(here, now_s), False
        if now_s < self._ask_at:
            return False
        self._asked, self._ask_at = True, None
        return True

    def _wait(self, here: int, now_s: float) -> float:
        """How long to let others come first."""
        least, odd = divmod(self.limit, self.processes)
        if here >= least + bool(odd):
            return PATIENCE_S
        wait_s = YIELD_S * _AGE_S / (_AGE_S + now_s - self._odd_at)
        return wait_s if wait_s >= AGAIN_S else 0.0


class Shares:
    """The shares of one worker process."""

    def __init__(self, queues: Iterable[str]) -> None:
        self._queues = frozenset(queues)
        self._processes: Counter[str] = Counter()
        self._shares: dict[str, Share] = {}

    def __bool__(self) -> bool:
        return bool(self._shares)

    def options_in_force(self, options: Mapping[str, QueueOptions]) -> None:
        """These are in force now."""
        limits = {
            name: each.concurrency
            for name, each in options.items()
            if name in self._queues and each.concurrency is not None
        }
        self._shares = {name: self._shares.get(name, Share()) for name in limits}
        for name, limit in limits.items():
            self._shares[name].limit = limit
            self._shares[name].processes = max(1, self._processes[name])

    def members_are(self, members: Iterable[MemberRecord]) -> None:
        """These are there."""
        self._processes = processes_by_queue(members)
        for name, share in self._shares.items():
            share.processes = max(1, self._processes[name])

    def room(self, queue: str, here: Callable[[str], int], now_s: float) -> int | None:
        """How many to ask a queue for; None: no bound of this kind."""
        share = self._shares.get(queue)
        return None if share is None else share.room(here(queue), now_s)

    def came(self, jobs: Iterable[ClaimedJob], now_s: float) -> None:
        """These were claimed."""
        if self._shares:
            counts = Counter(job.queue for job in jobs)
            for name, share in self._shares.items():
                share.came(counts[name], now_s)

    def opens_at(self) -> float | None:
        """When to ask again without a signal."""
        moments = [share.opens_at() for share in self._shares.values()]
        return min((at for at in moments if at is not None), default=None)


def processes_by_queue(members: Iterable[MemberRecord]) -> Counter[str]:
    """How many worker processes take from each queue. One that says nothing of its processes has one."""
    found = Counter[str]()
    for member in members:
        if member.health is Health.HEALTHY and member.info.slots:
            count = max(1, len(detail_of(member.info).processes))
            found.update(dict.fromkeys(member.info.queues, count))
    return found


async def watch_members(engine: Engine, shares: Shares, every_s: float) -> None:
    """Keep the shares. Until cancelled."""
    while True:
        if shares:
            with suppress(EngineUnavailable):  # the worker's other calls say so
                shares.members_are(await engine.members.list())
        await asyncio.sleep(jittered(every_s))
