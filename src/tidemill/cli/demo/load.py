"""`tidemill demo --load`: a steady stream of jobs to watch, until Ctrl-C."""

import asyncio
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemill.cli import exits
from tidemill.cli.demo.screen import empty_table, new_console, row
from tidemill.cli.demo.stage import DemoStage
from tidemill.cli.output.text import count
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.time import HOUR
from tidemill.model.view import Finished, JobFilter

TURN_S = 0.05
"""The stream is enqueued in as many jobs at a time as are due."""
POLL_S, POLL_ON_PAPER_S = 0.5, 1.0
SHOWN = 4
"""Jobs of each state in the picture."""
STATES = (JobState.RUNNING, JobState.SCHEDULED, JobState.COMPLETED, JobState.DEAD)


class Load:
    """A steady stream."""

    def __init__(self, rate: float, fail: float, work: tuple[float, float]) -> None:
        self._rate, self._fail, self._work = rate, fail, work
        self._enqueued = 0

    async def run(self, stage: DemoStage) -> int:
        """Enqueue and show until the user stops it."""
        console = new_console()
        if stage.where:
            console.print(Text(f"On {stage.where}, which is dropped at the end."))
        console.print(
            Text(
                f"{self._rate:g} jobs a second that work {self._work[0]:g} to {self._work[1]:g} s; "
                f"{self._fail:.0%} of the attempts fail. Ctrl-C ends it."
            )
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._produce(stage))
            group.create_task(self._show(stage, console))
        console.print(Text(await self._sum(stage.engine)))
        return exits.DONE

    async def _produce(self, stage: DemoStage) -> None:
        from tidemill.cli.demo.app import app, order

        loop = asyncio.get_running_loop()
        began = loop.time()
        while not stage.stopped.is_set():
            due = int((loop.time() - began) * self._rate) + 1 - self._enqueued
            if due > 0:
                numbers = range(self._enqueued, self._enqueued + due)
                await app.aenqueue_many(order.call(number, *self._work, self._fail) for number in numbers)
                self._enqueued += due
            await _pause(stage, TURN_S)

    async def _show(self, stage: DemoStage, console: Console) -> None:
        if not console.is_terminal:
            while not stage.stopped.is_set():
                console.print(Text(await self._sum(stage.engine)))
                stage.check_worker()
                await _pause(stage, POLL_ON_PAPER_S)
            return
        with Live(console=console, auto_refresh=False) as live:
            while not stage.stopped.is_set():
                live.update(await self._picture(stage.engine, console.width), refresh=True)
                stage.check_worker()
                await _pause(stage, POLL_S)

    async def _picture(self, engine: Engine, width: int) -> Table:
        grid = empty_table(await self._sum(engine), width)
        for state in STATES:
            page = await engine.inspect.list(JobFilter(state=state), limit=SHOWN)
            for job in page.jobs:
                grid.add_row(*row(job))
            for _ in range(SHOWN - len(page.jobs)):
                grid.add_row()
        return grid

    async def _sum(self, engine: Engine) -> str:
        queues = await engine.inspect.counts(window=HOUR)
        now = {state: sum(queue.in_state(state) for queue in queues) for state in JobState}
        ended = sum((queue.window for queue in queues), Finished())
        return (
            f"{count(self._enqueued, 'job')} enqueued: {now[JobState.READY]:,} ready, "
            f"{now[JobState.RUNNING]:,} running, {now[JobState.SCHEDULED]:,} waiting, {ended.completed:,} "
            f"completed, {count(ended.failed, 'failed attempt')}, {now[JobState.DEAD]:,} dead"
        )


async def _pause(stage: DemoStage, length_s: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(stage.stopped.wait(), length_s)
