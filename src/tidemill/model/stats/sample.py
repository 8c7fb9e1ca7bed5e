"""What the controller notes of each queue once a minute: its stock, what arrived, what has waited longest.

**Arrivals** are not counted where jobs are enqueued: nothing may be added there. They follow from what is
counted anyway:

    arrived = ended + change of stock

The stock of a queue is its live jobs. A sample is taken soon after a minute's end, never exactly at it. So
it adds what has ended since that end (`stock_at_end`): then the moment of the sample does not matter. What
arrived between the minute's end and the sample counts for that minute, not for the next. The sum over time is
exact, if the counts are: an engine may count a large stock some seconds late (`QueueCounts.age`). Jobs that
an operator drops before they have ended are taken off, and a replayed job arrives once more.
"""

from collections.abc import Mapping, Sequence

import msgspec

from tidemill.model.jobs.job import LIVE
from tidemill.model.stats.series import StatsSeries
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import QueueCounts

SAMPLES_LIMIT = 100_000
"""The most queues of one call."""
SAMPLES_BACK = 15
"""So many minutes after the last sample, what arrived since is still worked out."""


class QueueSample(msgspec.Struct, frozen=True, kw_only=True):
    """A queue at the end of a minute."""

    queue: str
    stock: int
    """Live jobs."""
    arrived: int | None = None
    """Since the sample before, usually a minute ago. None: there is no sample before."""
    oldest_ready: Span | None = None
    """How long the one that waits longest has been ready. None: no job is ready."""


class LastSample(msgspec.Struct, frozen=True, kw_only=True):
    """The sample before, with what ended in the whole minutes since."""

    stocks: Mapping[str, int]
    ended: Mapping[str, int]


def stock_at_end(counts: QueueCounts) -> int:
    """Live jobs, and those that have ended in the present minute: `counts` with a window of one minute."""
    window = counts.window
    live = sum(counts.in_state(state) for state in LIVE)
    return live + window.completed + window.died + window.cancelled


def sampled(counts: Sequence[QueueCounts], last: LastSample | None, now: Instant) -> list[QueueSample]:
    """The samples of all queues. `counts` with a window of one minute. A queue that the last sample does not
    have is new since."""
    found = []
    for each in counts:
        queue, stock = each.queue, stock_at_end(each)
        arrived = None
        if last is not None:
            arrived = max(0, stock - last.stocks.get(queue, 0) + last.ended.get(queue, 0))
        oldest = None if each.oldest_ready_at is None else max(0, now - each.oldest_ready_at)
        found.append(QueueSample(queue=queue, stock=stock, arrived=arrived, oldest_ready=oldest))
    return found


def last_minute(now: Instant) -> Instant:
    """The minute that is over."""
    return now - now % MINUTE - MINUTE


def is_sampled(series: Sequence[StatsSeries], minute: Instant) -> bool:
    """Whether a minute has samples. `series`: of queues, by the minute."""
    return any(point.at == minute and point.stock is not None for each in series for point in each.points)


def last_sample(series: Sequence[StatsSeries], minute: Instant) -> LastSample | None:
    """The newest samples before this minute, and what ended in the whole minutes since, this one included."""
    sampled_at = max(
        (p.at for each in series for p in each.points if p.at < minute and p.stock is not None), default=None
    )
    if sampled_at is None:
        return None
    stocks, ended = {}, {}
    for each in series:
        finished = [point.finished for point in each.points if sampled_at < point.at <= minute]
        ended[each.queue] = sum(one.completed + one.died + one.cancelled for one in finished)
        for point in each.points:
            if point.at == sampled_at and point.stock is not None:
                stocks[each.queue] = point.stock
    return LastSample(stocks=stocks, ended=ended)
