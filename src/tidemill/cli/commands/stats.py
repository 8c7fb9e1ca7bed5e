"""`tidemill stats`: each queue now, and what ended in a window."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.lengths import LengthType
from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import stats_shape
from tidemill.cli.output.text import Column, Columns, json_line, length
from tidemill.model.time import DAY, SECOND, Span, span_of
from tidemill.model.view import Finished, QueueCounts

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

NOW = ("ready", "scheduled", "running", "blocked", "dead")
"""What the table shows of the present; of what ended only dead letters wait for somebody."""
LONGEST_WINDOW: Span = 31 * DAY
"""Minute counts are kept a little longer than this."""


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
    """Count the jobs of every queue, empty ones too: now, and what ended in the window.

    DEAD are the dead letters that are kept now; DIED are the jobs that died in the window, even if they were
    replayed or dropped since."""
    span = span_of(window)

    async def work(engine: "Engine") -> list[QueueCounts]:
        return await engine.inspect.counts(window=span)

    found = with_engine(where, work)
    if as_json:
        for counts in found:
            json_line(stats_shape(counts, span))
        return
    now = [Column(name.upper(), right=True) for name in NOW]
    ended = [Column(head, right=True) for head in ("COMPLETED", "FAILED ATTEMPTS", "DIED", "CANCELLED")]
    Columns(Column("QUEUE"), *now, *ended).print([*map(_row, found), _total(found)])
    click.echo(f"up to DEAD: now; the last four: in {length(span)}", err=True)


def _row(counts: QueueCounts) -> tuple[object, ...]:
    return (counts.queue, *(getattr(counts, name) for name in NOW), *_ended(counts.window))


def _ended(window: Finished) -> tuple[int, int, int, int]:
    return window.completed, window.failed, window.died, window.cancelled


def _total(found: list[QueueCounts]) -> tuple[object, ...]:
    now = (sum(getattr(counts, name) for counts in found) for name in NOW)
    ended = sum((counts.window for counts in found), Finished())
    return ("(all)", *now, *_ended(ended))
