"""Claim size: the queues of a claim, each with the most jobs that it may give.

Most workers claim from all their queues as many jobs as there is room for. Two kinds of queues get a bound of
their own. Queues with a `per_worker` limit: each worker process keeps that limit by itself. And queues whose
jobs are under a limit or fairness: those jobs cannot wait in the buffer, so no more than the free slots are
claimed.

Of a queue with a concurrency a process asks for its share first (`shares`).

Both are known from the app's declarations at first, then from the options in force (`options_watch`), and the
second kind also from the jobs that come.

**Beside jobs that cannot wait, little is claimed ahead.** Several such queues together could give more jobs
than there are slots. Jobs that find no slot are released, and each loses a rate permit. And a buffer that
other queues fill takes every slot that becomes free, so that a rate is not used up although there are jobs
for it. So:

- A claim is for all queues or for none: while no slot is free, nothing is claimed.
- It is for the free slots in all, and the engine lets the queues take turns.
- Only if the queues that cannot wait gave nothing the last time may the others fill the buffer too. Then each
  queue that cannot wait is bound to a share of the free slots, so that even if all of them give jobs there is
  a slot for each. If one gives some, the next claim follows at once, because slots may be left that were kept
  for an idle queue.

(Shares in every claim, with the buffer filled beside, were tried: with two queues of 300 a second and a
backlog in a third without limits, a worker with 10 slots used half of both rates. This way it uses all, and
the third queue is no slower.)
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tidemill.model.jobs.run import ClaimedJob, Want
from tidemill.model.queues.gate import permits_of
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.queues.starts import start_rules
from tidemill.model.time import SECOND
from tidemill.task.registry import Registry
from tidemill.worker.claiming.shares import Shares

TOGETHER = 32
"""The most jobs of one claim that have to start at the same moment, to a few milliseconds: to call so many
functions takes about three."""


class PerWorker:
    """One queue's `per_worker` limit in this worker process."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._log: deque[tuple[float, int]] = deque()  # (when, how many) within the window

    def room(self, here: int, now_s: float) -> int | None:
        """How many more; None: no bound. `here`: how many run or wait in this worker."""
        rooms = []
        if self.limit.concurrency is not None:
            rooms.append(max(0, self.limit.concurrency - here))
        if self.limit.rate is not None:
            rooms.append(self._permits(self.limit.rate, now_s))
        return min(rooms, default=None)

    def took(self, count: int, now_s: float) -> None:
        """So many were claimed."""
        if self.limit.rate is not None:
            self._log.append((now_s, count))

    def opens_at(self) -> float | None:
        """When the oldest permits come back; None: none are taken."""
        if self.limit.rate is None or not self._log:
            return None
        return self._log[0][0] + permits_of(self.limit.rate).span / SECOND

    def _permits(self, rate: Rate, now_s: float) -> int:
        permits = permits_of(rate)
        while self._log and self._log[0][0] + permits.span / SECOND <= now_s:
            self._log.popleft()
        return max(0, permits.most - sum(count for _, count in self._log))


class ClaimBounds(NamedTuple):
    """The bounds of one claim: of each queue, in all, and of suspects."""

    wants: tuple[Want, ...]
    most: int
    suspects: int


class ClaimSize:
    """Sizes the claims of one worker."""

    def __init__(self, queues: Sequence[str], registry: Registry) -> None:
        self._queues = queues
        self._unbound = tuple(Want(queue) for queue in queues)
        self._per_worker = {
            queue: PerWorker(options.per_worker)
            for queue in queues
            if (options := registry.options_of(queue)).per_worker
        }
        # Corrected by the jobs that come: an operator may change limits at any time.
        self._cannot_wait = {queue for queue in queues if _limited(registry.options_of(queue))}
        declared = {queue: registry.options_of(queue) for queue in queues}
        self.shares = Shares(queues)
        self.shares.options_in_force(declared)
        self._punctual = {queue for queue in queues if _is_punctual(declared[queue])}
        self._idle = False  # the queues that cannot wait gave nothing the last time
        self._shared = False  # and were bound to their shares
        self.cut_short = False
        """A queue that was bound to its share gave something: it may have more, and there may be slots."""

    def options_in_force(self, options: Mapping[str, QueueOptions]) -> None:
        """These are in force now. What a rate has given counts on."""
        for queue in self._queues:
            limit, known = options.get(queue, QueueOptions()).per_worker, self._per_worker.get(queue)
            if not limit:
                self._per_worker.pop(queue, None)
            elif known is None:
                self._per_worker[queue] = PerWorker(limit)
            else:
                known.limit = limit
        self._cannot_wait = {queue for queue in self._queues if _limited(options.get(queue, QueueOptions()))}
        self._punctual = {queue for queue in self._queues if _is_punctual(options.get(queue, QueueOptions()))}
        self.shares.options_in_force(options)

    def room(self, free: int, ahead: int) -> int:
        """How many jobs there is room for. `ahead` of them would have to wait for a slot."""
        if not self._cannot_wait:
            return free + ahead
        return free + ahead if free and self._idle else free

    def queues(self, free: int, here: Callable[[str], int], now_s: float) -> tuple[Want, ...]:
        """The queues that may give jobs now, each with its bound. `here`: how many of a queue run or wait
        here."""
        if not self._per_worker and not self._cannot_wait:
            return self._unbound
        bounds = {queue: self._bound(queue, free, here, now_s) for queue in self._queues}
        return tuple(Want(queue, bound) for queue, bound in bounds.items() if bound != 0)

    def fit(self, bounds: ClaimBounds, free: int) -> ClaimBounds:
        """The same claim, bounded so that every job that cannot wait finds a slot."""
        self._shared = False
        if not self._cannot_wait or bounds.most <= free:
            return bounds
        urgent = [want for want in bounds.wants if want.queue in self._cannot_wait]
        if sum(want.most or 0 for want in urgent) + bounds.suspects <= free:
            return bounds
        share = (free - bounds.suspects) // len(urgent)
        if not share or len(urgent) == len(bounds.wants):
            return bounds._replace(most=free)
        self._shared = True
        return bounds._replace(wants=tuple(self._cut(want, share) for want in bounds.wants))

    def came(self, jobs: Sequence[ClaimedJob], now_s: float) -> None:
        """These were claimed."""
        self._idle = True
        for job in jobs:
            if job.limited:
                self._idle = False
                self._cannot_wait.add(job.queue)
            elif job.queue in self._cannot_wait:
                self._cannot_wait.remove(job.queue)
        for queue, limit in self._per_worker.items():
            if count := sum(job.queue == queue for job in jobs):
                limit.took(count, now_s)
        self.shares.came(jobs, now_s)
        self.cut_short = self._shared and not self._idle
        for queue in self._punctual:
            if sum(job.queue == queue for job in jobs) >= TOGETHER:
                self.cut_short = True

    def opens_at(self) -> float | None:
        """When time alone opens one of our own rates, or lets us ask for more than our share."""
        moments = [limit.opens_at() for limit in self._per_worker.values()]
        moments.append(self.shares.opens_at())
        return min((at for at in moments if at is not None), default=None)

    def _bound(self, queue: str, free: int, here: Callable[[str], int], now_s: float) -> int | None:
        limit = self._per_worker.get(queue)
        room = None if limit is None else limit.room(here(queue), now_s)
        if queue in self._cannot_wait:
            room = free if room is None else min(room, free)
            share = self.shares.room(queue, here, now_s)
            room = room if share is None else min(room, share)
            if queue in self._punctual:
                room = min(room, TOGETHER)
        return room

    def _cut(self, want: Want, share: int) -> Want:
        if want.queue not in self._cannot_wait:
            return want
        return Want(want.queue, min(want.most or 0, share))


def _is_punctual(options: QueueOptions) -> bool:
    """Whether jobs of such a queue have to start within a few milliseconds."""
    rules = start_rules(options)
    return rules is not None and rules.delay > 0


def _limited(options: QueueOptions) -> bool:
    """Whether jobs of such a queue are `limited`."""
    return bool(options.own) or options.keyed or any(options.per_task.values())
