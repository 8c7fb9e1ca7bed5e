"""The demo on a screen: a live table with lines above it; without a terminal the lines alone."""

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemill.cli.demo.happenings import attempt, happenings, waits
from tidemill.cli.output.job_text import brief
from tidemill.cli.output.text import STATE_COLOURS, one_line
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import JobRecord, JobState

PAPER_WIDTH = 200
"""Of lines where no terminal says how wide it is: wide enough that none is broken."""

COLUMNS = {"id": 11, "task": 10, "attempt": 7, "state": 9, "retry wait": 10}
"""The columns of the table and their widths; the last error has what is left."""
PADDING = 3
LEAST_ROOM = 10


def new_console() -> Console:
    """Standard output, as wide as it is."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=PAPER_WIDTH)


class Screen:
    """Shows jobs as they change: `with Screen() as screen: screen.show(jobs)`."""

    def __init__(self) -> None:
        self.console = new_console()
        self._began = time.monotonic()
        self._last: dict[JobId, JobRecord] = {}
        self._live = Live(console=self.console, auto_refresh=False, transient=True)

    def __enter__(self) -> "Screen":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def show(self, jobs: Sequence[JobRecord]) -> None:
        """Tell what is new, and draw the table."""
        for job in jobs:
            for number, what in happenings(self._last.get(job.id), job):
                self.say(f"{show_id(job.id)}  {job.task:<10}  {number:>3}  {what}", job.state)
            self._last[job.id] = job
        if self.console.is_terminal:
            self._live.update(table(jobs, self._elapsed(), self.console.width), refresh=True)

    def say(self, what: str, state: JobState | None = None) -> None:
        """A line, with the time."""
        style = STATE_COLOURS.get(state.value, "") if state in (JobState.COMPLETED, JobState.DEAD) else ""
        self.console.print(Text(f"{self._elapsed():5.1f} s  {one_line(what)}", style=style))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began


def table(jobs: Sequence[JobRecord], elapsed_s: float, width: int) -> Table:
    """All jobs as they are now."""
    states = [job.state.value for job in jobs]
    counts = ", ".join(f"{states.count(state)} {state}" for state in JobState if state.value in states)
    grid = empty_table(f"{elapsed_s:.0f} s: {counts}", width)
    for job in jobs:
        grid.add_row(*row(job))
    return grid


def empty_table(caption: str, width: int) -> Table:
    """A table of jobs without any. A long error must not take the other columns' place."""
    grid = Table(caption=caption)
    for head, taken in COLUMNS.items():
        grid.add_column(head, no_wrap=True, overflow="ellipsis", min_width=taken)
    room = width - sum(COLUMNS.values()) - PADDING * (len(COLUMNS) + 1) - 1
    grid.add_column("last error", no_wrap=True, overflow="ellipsis", max_width=max(LEAST_ROOM, room))
    return grid


def row(job: JobRecord) -> tuple[str | Text, ...]:
    """A job in `COLUMNS`. Of an id the end is shown: the beginning is the time, and alike in all."""
    state = Text(job.state.value, style=STATE_COLOURS.get(job.state.value, ""))
    error = one_line(brief(job.error)) if job.error else ""
    return (f"...{show_id(job.id)[-8:]}", job.task, attempt(job), state, waits(job), error)
