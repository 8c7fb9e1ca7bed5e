"""Statistics as they are read: the call checked, and rows of any store put together to series."""

from collections.abc import Iterable
from typing import get_args

from tidemill.engine.shared.checks import check_number
from tidemill.engine.shared.finished import SERIES_LIMIT
from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue, check_task
from tidemill.model.stats.batch import OTHER_TASKS, WHOLE_QUEUE
from tidemill.model.stats.histogram import add_into, run_of, wait_of
from tidemill.model.stats.series import StatsBy, StatsPoint, StatsSeries
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import Finished, check_series_step


class StatsSpan:
    """A call of `inspect.stats`. Stores hand in what they find of each minute (or step), in any order."""

    def __init__(
        self,
        since: Instant,
        until: Instant,
        step: Span | None,
        by: StatsBy,
        queue: str | None,
        task: str | None,
    ) -> None:
        """`BadInput` for what cannot be answered."""
        check_number(since, "the beginning of a series")
        check_number(until, "the end of a series")
        if step is not None:
            check_series_step(check_number(step, "a series' step"))
        if by not in get_args(StatsBy):
            raise BadInput(f'statistics are by "queue" or by "task", not by {by!r}')
        if queue is not None:
            check_queue(queue)
        if task is not None and by != "task":
            raise BadInput('statistics of one task are asked for with by="task"')
        if task is not None and task != OTHER_TASKS:
            check_task(task)
        self.first = since - since % (step or MINUTE)
        self.until = until
        self.step: Span = step or max(MINUTE, until - self.first)
        if (until - self.first) // self.step > SERIES_LIMIT:
            raise BadInput(f"a series has at most {SERIES_LIMIT:,} points: take a longer step")
        self.by_task = by == "task"
        self.queue = queue
        self.task = task
        self._points: dict[tuple[str, str], dict[Instant, _Sums]] = {}

    def add_cells(self, queue: str, task: str, at: Instant, packed: Iterable[int]) -> None:
        """Waiting and run times. `task`: `WHOLE_QUEUE` for a queue."""
        add_into(self._at(queue, task, at).cells, packed)

    def add_finished(self, queue: str, at: Instant, finished: Finished) -> None:
        """What ended in a queue."""
        sums = self._at(queue, WHOLE_QUEUE, at)
        sums.finished += finished

    def add_sample(
        self, queue: str, at: Instant, stock: int, arrived: int | None, oldest_ready: Span | None
    ) -> None:
        """A sample of a queue."""
        sums = self._at(queue, WHOLE_QUEUE, at)
        if sums.stock is None or at >= sums.sampled_at:
            sums.stock, sums.sampled_at = stock, at
        if arrived is not None:
            sums.arrived = (sums.arrived or 0) + arrived
        if oldest_ready is not None:
            sums.oldest_ready = max(sums.oldest_ready or 0, oldest_ready)

    def series(self) -> list[StatsSeries]:
        """All that was found."""
        return [
            StatsSeries(
                queue=queue,
                task=task or None,
                points=[sums.point(at) for at, sums in sorted(points.items())],
            )
            for (queue, task), points in sorted(self._points.items())
        ]

    def _at(self, queue: str, task: str, at: Instant) -> "_Sums":
        points = self._points.setdefault((queue, task), {})
        at -= (at - self.first) % self.step
        if (sums := points.get(at)) is None:
            sums = points[at] = _Sums()
        return sums


class _Sums:
    """One step of one series."""

    __slots__ = ("arrived", "cells", "finished", "oldest_ready", "sampled_at", "stock")

    def __init__(self) -> None:
        self.cells: dict[int, int] = {}
        self.finished = Finished()
        self.arrived: int | None = None
        self.oldest_ready: Span | None = None
        self.stock: int | None = None
        self.sampled_at: Instant = 0

    def point(self, at: Instant) -> StatsPoint:
        return StatsPoint(
            at=at,
            wait=wait_of(self.cells),
            run=run_of(self.cells),
            finished=self.finished,
            arrived=self.arrived,
            oldest_ready=self.oldest_ready,
            stock=self.stock,
        )
