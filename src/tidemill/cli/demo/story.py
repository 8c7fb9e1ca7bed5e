"""The demo's story: a few jobs, good and bad, a murder, and the count at the end."""

import asyncio
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from tidemill.app.task import Call
from tidemill.cli.demo.ending import show_the_end
from tidemill.cli.demo.screen import Screen
from tidemill.cli.demo.stage import DemoStage
from tidemill.cli.output.text import count
from tidemill.model.ids import JobId, parse_id, show_id
from tidemill.model.jobs.job import FINAL, JobRecord, JobState

POLL_S = 0.1
PATIENCE_S = 90.0
"""The story takes 15 to 20 seconds; on a machine so busy that it takes this long it is broken off."""
KILL_AFTER_FRAMES = 4
_PROCESS = re.compile(r"in process (\d+)")


def cast() -> list[Call[object]]:
    """Who appears, in the order of their appearance."""
    from tidemill.cli.demo import app

    return [
        *(app.welcome.call(f"{name}@example.com") for name in ("ada", "grace", "barbara")),
        app.render.call("Metropolis", frames=24),
        app.thumbnail.call("sunset.jpg", width=320),
        app.thumbnail.call("dawn.jpg", width=320),
        app.newsletter.call("ada@example.com"),
        app.newsletter.call("grace@example.com"),
        app.refund.call(4711, cents=1250),
        app.refund.call(4712, cents=99),
        app.export.call("customers"),
        app.remind.using(delay=5).call("barbara@example.com"),
        app.remind.using(delay=10).call("ada@example.com"),
    ]


async def play_story(stage: DemoStage) -> int:
    """Play it; 0 if every job that was enqueued has ended, as the engine knows it."""
    from tidemill.cli.demo.app import app

    with Screen() as screen:
        if stage.where:
            screen.say(f"on {stage.where}, which is dropped at the end")
        screen.say(f"a worker starts: `tidemill worker` with process id {stage.worker.pid}")
        handles = await app.aenqueue_many(cast())
        screen.say(f"{count(len(handles), 'job')} enqueued")
        ids = [parse_id(job.id) for job in handles]
        ended = await _watch(stage, screen, ids)
    return await show_the_end(stage.engine, ids, screen.console, complete=ended)


async def _watch(stage: DemoStage, screen: Screen, ids: Sequence[JobId]) -> bool:
    """Show everything until all have ended. False: interrupted, or it took too long."""
    victim: int | None = None
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    while loop.time() < deadline and not stage.stopped.is_set():
        jobs = [job for job in await stage.engine.inspect.get(ids) if job is not None]
        screen.show(jobs)
        if victim is None and (victim := _kill(jobs, screen)):
            continue
        if all(job.state in FINAL for job in jobs):
            return True
        stage.check_worker()
        with suppress(TimeoutError):
            await asyncio.wait_for(stage.stopped.wait(), POLL_S)
    return False


def _kill(jobs: Sequence[JobRecord], screen: Screen) -> int | None:
    """Kill the process that renders the film, once it is well under way."""
    for job in jobs:
        if job.task != "render" or job.state is not JobState.RUNNING or job.progress is None:
            continue
        progress = msgspec.json.decode(job.progress)
        found = _PROCESS.search(progress.get("message", ""))
        if found is None or progress["done"] < KILL_AFTER_FRAMES:
            continue
        process = int(found[1])
        screen.say(f"kill -9 {process}: the worker process that runs {show_id(job.id)}")
        with suppress(ProcessLookupError):  # it ended by itself: too late
            os.kill(process, signal.SIGKILL)
        return process
    return None
