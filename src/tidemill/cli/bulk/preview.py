"""A preview of the jobs that a filter matches, before something is done to them."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from tidemill.cli.options.picking import pages
from tidemill.cli.output.job_text import COLUMNS, row
from tidemill.cli.output.text import Columns, count
from tidemill.model.view import PAGE_LIMIT, JobFilter, is_scanned

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

FIRST_ROWS = 5
COUNTING_S = 2.0
"""How long a preview may count; beyond that it says "at least"."""


class Estimate(NamedTuple):
    """How many jobs a filter matches."""

    jobs: int
    exact: bool

    def __str__(self) -> str:
        return ("" if self.exact else "at least ") + count(self.jobs, "job")


async def preview(engine: "Engine", filters: Sequence[JobFilter], found: Estimate) -> None:
    """Show how many there are, and the first of them."""
    click.echo(f"{found} found; the first:" if found.jobs > FIRST_ROWS else f"{found} found:", err=True)
    listing, left = Columns(*COLUMNS, to_error=True), FIRST_ROWS
    for only in filters:
        async for jobs in pages(engine, only, left):
            listing.print(map(row, jobs))
            left -= len(jobs)


async def estimate(engine: "Engine", filters: Sequence[JobFilter]) -> Estimate:
    """How many there are: by the engine's own counts if it has them, else by a scan, for a while."""
    if not any(only.group or is_scanned(only) for only in filters):
        counts = await engine.inspect.counts()
        jobs = sum(
            queue.in_state(only.state)
            for only in filters
            for queue in counts
            if only.state is not None and only.queue in (None, queue.queue)
        )
        return Estimate(jobs, exact=True)
    deadline, jobs = time.monotonic() + COUNTING_S, 0
    for only in filters:
        cursor = None
        while True:
            page = await engine.inspect.list(only, cursor=cursor, limit=PAGE_LIMIT)
            jobs, cursor = jobs + len(page.jobs), page.cursor
            if cursor is None:
                break
            if time.monotonic() > deadline:
                return Estimate(jobs, exact=False)
    return Estimate(jobs, exact=True)
