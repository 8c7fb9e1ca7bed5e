"""`tidemill stats`: each queue now, and what happened in a window."""

from typing import TYPE_CHECKING, NamedTuple

import click

from tidemill.cli.options.lengths import LengthType
from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import oldest_ready, stats_shape
from tidemill.cli.output.text import Column, Columns, about, json_line, length
from tidemill.model.stats.series import StatsPoint, total_of
from tidemill.model.time import DAY, MINUTE, SECOND, Instant, Span, span_of
from tidemill.model.view import Finished, QueueCounts

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

NOW = ("ready", "scheduled", "running", "blocked", "dead")
"""What the table shows of the present; of what ended, only dead letters wait for an operator."""
LONGEST_WINDOW: Span = 31 * DAY
"""Minute counts are kept a little longer than this."""
NOTHING = StatsPoint(at=0)


class FoundStats(NamedTuple):
    """What the engine knows."""

    now: Instant
    counts: list[QueueCounts]
    times: dict[str, StatsPoint]
    """The window of each queue as one step."""


@click.command()
@click.option(
    "--window",
    type=LengthType(60, LONGEST_WINDOW / SECOND),
    default="24h",
    show_default=True,
    help="What ended is counted over this time: 5m, 24h, 7d.",
)
@json_option
@where_options
def stats(where: Where, window: float, as_json: bool) -> None:
    """Count the jobs of every queue, empty ones too: now, and what ended in the window. And how long they
    waited and ran.

    DEAD are the dead letters that are kept now; DIED are the jobs that died in the window, even if they were
    replayed or dropped since. OLDEST is how long the oldest ready job waits now. WAIT and RUN are percentiles
    of the window, at most 22.5% off: how long jobs had been ready when a worker took them, and how long
    their runs took."""
    span = span_of(window)

    async def work(engine: "Engine") -> FoundStats:
        now = await engine.now()
        since = now - now % MINUTE - (span // MINUTE - 1) * MINUTE
        series = await engine.inspect.stats(since=since, until=now + 1)
        times = {each.queue: total_of(each.points) for each in series}
        return FoundStats(now, await engine.inspect.counts(window=span), times)

    found = with_engine(where, work)
    if as_json:
        for counts in found.counts:
            json_line(stats_shape(counts, span, found.times.get(counts.queue, NOTHING), found.now))
        return
    now = [Column(name.upper(), right=True) for name in (*NOW, "oldest")]
    ended = [Column(head, right=True) for head in ("COMPLETED", "FAILED ATTEMPTS", "DIED", "CANCELLED")]
    times = [Column(head, right=True) for head in ("WAIT P50", "WAIT P95", "RUN P50", "RUN P95")]
    rows = [*(_row(found, counts) for counts in found.counts), _total(found)]
    Columns(Column("QUEUE"), *now, *ended, *times).print(rows)
    click.echo(f"up to OLDEST: now; the others: in {length(span)}", err=True)


def _row(found: FoundStats, counts: QueueCounts) -> tuple[object, ...]:
    now = (getattr(counts, name) for name in NOW)
    times = found.times.get(counts.queue, NOTHING)
    times = StatsPoint(at=0, wait=times.wait, run=times.run, finished=counts.window)
    return (counts.queue, *now, about(oldest_ready(counts, found.now)), *_of_window(times))


def _of_window(point: StatsPoint) -> tuple[object, ...]:
    ended = point.finished
    times = (about(each.percentile(share)) for each in (point.wait, point.run) for share in (0.5, 0.95))
    return (ended.completed, ended.failed, ended.died, ended.cancelled, *times)


def _total(found: FoundStats) -> tuple[object, ...]:
    now = (sum(getattr(counts, name) for counts in found.counts) for name in NOW)
    waits = [wait for counts in found.counts if (wait := oldest_ready(counts, found.now)) is not None]
    times = total_of(list(found.times.values()))
    ended = sum((counts.window for counts in found.counts), Finished())
    times = StatsPoint(at=0, wait=times.wait, run=times.run, finished=ended)
    return ("(all)", *now, about(max(waits, default=None)), *_of_window(times))
