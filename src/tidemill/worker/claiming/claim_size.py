"""What to ask for: the queues of a claim, each with the most that it may give.

Most workers ask all their queues for as much as there is room. Two kinds of queues get a bound of their own:
those with a `per_worker` limit, which each worker keeps for itself, and those whose jobs are under a limit or
fairness: they cannot wait in the buffer, so they are asked for no more than the free slots.

Which queues are of the latter kind is known from the app's declarations at first, then from what comes.

**Beside jobs that cannot wait little is claimed ahead.** Several such queues could give more together than
there are slots; what finds none is given back, and a rate permit is lost with each. And a buffer that others
fill takes every slot that becomes free, so that a rate is not used up although there are jobs for it. So:

- a claim asks all queues or none: while no slot is free, nobody is asked;
- it is for the free slots in all, and the engine lets the queues take turns;
- only when those that cannot wait gave nothing the last time may the others fill the buffer too. Then those
  are each asked for a share of the free slots, so that even if all give at once there is a slot for each job;
  and if one gives, all are asked again at once, because slots may be left that were kept for an idle one.

(Shares in every claim, with the buffer filled beside, were tried: with two queues of 300 a second and a
backlog in a third without limits, a worker with 10 slots used half of both rates. This way it uses all, and
the third queue is no slower.)
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidemill.model.jobs.run import ClaimedJob, Want
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.task.registry import Registry


class PerWorker:
    """One queue's limit in this worker."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._log: deque[tuple[float, int]] = deque()  # (when, how many) within the window

    def room(self, here: int, now_s: float) -> int | None:
        """How many more; None: no bound. `here`: how many run or wait in this worker."""
        rooms = []
        if self._limit.concurrency is not None:
            rooms.append(max(0, self._limit.concurrency - here))
        if self._limit.rate is not None:
            rooms.append(self._permits(self._limit.rate, now_s))
        return min(rooms, default=None)

    def took(self, count: int, now_s: float) -> None:
        """So many were claimed."""
        if self._limit.rate is not None:
            self._log.append((now_s, count))

    def opens_at(self) -> float | None:
        """When the oldest permits come back; None: none are taken."""
        if self._limit.rate is None or not self._log:
            return None
        return self._log[0][0] + self._limit.rate.per

    def _permits(self, rate: Rate, now_s: float) -> int:
        while self._log and self._log[0][0] + rate.per <= now_s:
            self._log.popleft()
        return max(0, rate.count - sum(count for _, count in self._log))


class ClaimBounds(NamedTuple):
    """What a claim asks for."""

    wants: tuple[Want, ...]
    most: int
    suspects: int


class ClaimSize:
    """The wants of one worker."""

    def __init__(self, queues: Sequence[str], registry: Registry) -> None:
        self._queues = queues
        self._unbound = tuple(Want(queue) for queue in queues)
        self._per_worker = {
            queue: PerWorker(options.per_worker)
            for queue in queues
            if (options := registry.options_of(queue)).per_worker
        }
        # Corrected by what comes: an operator may change it any time.
        self._cannot_wait = {queue for queue in queues if _limited(registry.options_of(queue))}
        self._idle = False  # those that cannot wait gave nothing the last time
        self._shared = False  # and were asked for their shares only
        self.cut_short = False
        """One that was asked for its share only gave something: it may have more, and there may be slots."""

    def room(self, free: int, ahead: int) -> int:
        """How many jobs there is room for: `ahead` of them would have to wait for a slot."""
        if not self._cannot_wait:
            return free + ahead
        return free + ahead if free and self._idle else free

    def ask(self, free: int, here: Callable[[str], int], now_s: float) -> tuple[Want, ...]:
        """The queues that may give something now. `here`: how many of a queue run or wait here."""
        if not self._per_worker and not self._cannot_wait:
            return self._unbound
        bounds = {queue: self._bound(queue, free, here, now_s) for queue in self._queues}
        return tuple(Want(queue, bound) for queue, bound in bounds.items() if bound != 0)

    def fit(self, ask: ClaimBounds, free: int) -> ClaimBounds:
        """The same claim, so that all it brings that cannot wait finds a slot."""
        self._shared = False
        if not self._cannot_wait or ask.most <= free:
            return ask
        urgent = [want for want in ask.wants if want.queue in self._cannot_wait]
        if sum(want.most or 0 for want in urgent) + ask.suspects <= free:
            return ask
        share = (free - ask.suspects) // len(urgent)
        if not share or len(urgent) == len(ask.wants):
            return ask._replace(most=free)
        self._shared = True
        return ask._replace(wants=tuple(self._cut(want, share) for want in ask.wants))

    def came(self, jobs: Iterable[ClaimedJob], now_s: float) -> None:
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
        self.cut_short = self._shared and not self._idle

    def opens_at(self) -> float | None:
        """When time alone opens one of our own rates."""
        moments = [at for limit in self._per_worker.values() if (at := limit.opens_at()) is not None]
        return min(moments, default=None)

    def _bound(self, queue: str, free: int, here: Callable[[str], int], now_s: float) -> int | None:
        limit = self._per_worker.get(queue)
        room = None if limit is None else limit.room(here(queue), now_s)
        if queue in self._cannot_wait:
            room = free if room is None else min(room, free)
        return room

    def _cut(self, want: Want, share: int) -> Want:
        if want.queue not in self._cannot_wait:
            return want
        return Want(want.queue, min(want.most or 0, share))


def _limited(options: QueueOptions) -> bool:
    """Whether jobs of such a queue are `limited`."""
    return bool(options.own) or options.keyed or any(options.per_task.values())
