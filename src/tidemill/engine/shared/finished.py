"""Counts of what ended: the span that a call asks for, checked and cut to whole steps."""

from collections.abc import Mapping
from typing import NamedTuple

from tidemill.engine.shared.checks import check_number
from tidemill.model.errors import BadInput
from tidemill.model.names import check_queue
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import Finished, SeriesPoint, check_series_step

SERIES_LIMIT = 100_000


class SeriesSpan(NamedTuple):
    """A series: from `first` until `until` (exclusive), in steps."""

    first: Instant
    until: Instant
    step: Span

    def points(self, found: Mapping[Instant, Finished]) -> list[SeriesPoint]:
        """Every step, also where nothing ended."""
        return [SeriesPoint(at, found.get(at, Finished())) for at in range(*self)]


def series_span(since: Instant, until: Instant, step: Span, queue: str | None) -> SeriesSpan:
    """The span of a series, or `BadInput`."""
    check_series_step(check_number(step, "a series' step"))
    check_number(since, "the beginning of a series")
    check_number(until, "the end of a series")
    if queue is not None:
        check_queue(queue)
    first = since - since % step
    if (until - first) // step > SERIES_LIMIT:
        raise BadInput(f"a series has at most {SERIES_LIMIT:,} points: take a longer step")
    return SeriesSpan(first, until, step)


def minutes_back(window: Span) -> int:
    """How many whole minutes a window has before the current one."""
    return max(1, check_number(window, "a window") // MINUTE) - 1
