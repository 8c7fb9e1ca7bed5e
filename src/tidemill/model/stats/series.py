"""Statistics over time, as they are read."""

from typing import Literal, TypeAlias

import msgspec

from tidemill.model.stats.histogram import Histogram
from tidemill.model.time import Instant, Span
from tidemill.model.view import Finished

StatsBy: TypeAlias = Literal["queue", "task"]


class StatsPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a series."""

    at: Instant
    wait: Histogram = Histogram()
    """How long jobs that were claimed had been ready."""
    run: Histogram = Histogram()
    """How long runs that ended took, however they ended."""
    finished: Finished = Finished()
    """What ended, as `inspect.series` has it: exact. Of whole queues only."""
    arrived: int | None = None
    """Jobs that came, where the controller sampled. Of whole queues only, as are the next two."""
    oldest_ready: Span | None = None
    """The longest that a ready job had waited at a sample; None: none was ready, or nothing was sampled."""
    stock: int | None = None
    """Live jobs at the last sample."""


class StatsSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one queue, or of one task in one queue."""

    queue: str
    task: str | None
    """None: the whole queue. `OTHER_TASKS`: those without rows of their own."""
    points: list[StatsPoint]
    """By time; a step of which nothing is known is left out."""


def total_of(points: list[StatsPoint]) -> StatsPoint:
    """Steps as one: sums, the longest wait, the last stock."""
    arrived = [point.arrived for point in points if point.arrived is not None]
    stocks = [point.stock for point in points if point.stock is not None]
    return StatsPoint(
        at=points[0].at if points else 0,
        wait=sum((point.wait for point in points), Histogram()),
        run=sum((point.run for point in points), Histogram()),
        finished=sum((point.finished for point in points), Finished()),
        arrived=sum(arrived) if arrived else None,
        oldest_ready=max(
            (point.oldest_ready for point in points if point.oldest_ready is not None), default=None
        ),
        stock=stocks[-1] if stocks else None,
    )
