"""What to ask for: the queues of a claim, each with the most that it may give.

Most workers ask all their queues for as much as there is room. Two kinds of queues get a bound of their own:
those with a `per_worker` limit, which each worker keeps for itself, and those whose jobs are under a limit or
fairness: they cannot wait in the buffer, so they are asked for no more than the free slots.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from penstock.model.queue import Limit, Rate
from penstock.model.run import ClaimedJob, Want
from penstock.task.registry import Registry


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


class Wants:
    """The wants of one worker."""

    def __init__(self, queues: Sequence[str], registry: Registry) -> None:
        self._queues = queues
        self._unbound = tuple(Want(queue) for queue in queues)
        self._per_worker = {
            queue: PerWorker(options.per_worker)
            for queue in queues
            if (options := registry.options_of(queue)).per_worker
        }
        self._cannot_wait: set[str] = set()  # learnt from what came: an operator may change it any time

    def ask(self, free: int, here: Callable[[str], int], now_s: float) -> tuple[Want, ...]:
        """The queues that may give something now. `here`: how many of a queue run or wait here."""
        if not self._per_worker and not self._cannot_wait:
            return self._unbound
        bounds = {queue: self._bound(queue, free, here, now_s) for queue in self._queues}
        return tuple(Want(queue, bound) for queue, bound in bounds.items() if bound != 0)

    def came(self, jobs: Iterable[ClaimedJob], now_s: float) -> None:
        """These were claimed."""
        for job in jobs:
            if job.limited:
                self._cannot_wait.add(job.queue)
            elif job.queue in self._cannot_wait:
                self._cannot_wait.remove(job.queue)
        for queue, limit in self._per_worker.items():
            if count := sum(job.queue == queue for job in jobs):
                limit.took(count, now_s)

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
