"""The app of these tests in a process that dies at a chosen moment, once.

`DIE_AT` names the moment, `DIE_ONCE` a file: whoever makes it is the one that dies. Loaded as its app, this
module replaces parts of the worker process around it, which knows nothing of it.
"""

import os
import signal
from pathlib import Path
from typing import Any

from tests.integration.supervisor.app import app
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.worker.process import main
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.run_steps import RunSteps

__all__ = ["app"]

POINTS = (
    "before claim",
    "after claim",
    "after answer",
    "before start",
    "after start",
    "before settle",
    "after settle",
    "after let go",
)


def at(point: str) -> None:
    """Die here, if this is the moment and nobody has died yet."""
    if os.environ["DIE_AT"] != point:
        return
    try:
        Path(os.environ["DIE_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class DyingJobs:
    """The `jobs` facet, with deaths around what the worker calls."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    async def claim(self, request: Any, **options: Any) -> Any:
        at("before claim")
        claim = await self._jobs.claim(request, **options)
        if claim.jobs:
            at("after claim")
        return claim

    async def settle(self, settlements: Any, *, claim: Any = None, **options: Any) -> Any:
        if settlements:
            at("before settle")
        settled = await self._jobs.settle(settlements, claim=claim, **options)
        if settlements:
            at("after settle")
        if settled.claim is not None and settled.claim.jobs:
            at("after claim")
        return settled


class DyingEngine:
    """An engine with that facet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.jobs = DyingJobs(engine.jobs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def connect_dying(*args: Any, **options: Any) -> Any:
    return DyingEngine(await connect(*args, **options))


class DyingHeldTable(HeldTable):
    """A held table whose writer dies after it has written."""

    def answered(self, number: int) -> None:
        super().answered(number)
        at("after answer")

    def let_go(self, row: int) -> None:
        super().let_go(row)
        at("after let go")


start = RunSteps.start


def start_dying(self: RunSteps, run: Any) -> None:
    at("before start")
    start(self, run)
    at("after start")


if "DIE_AT" in os.environ:  # not where a test only reads the list of moments
    main.connect = connect_dying  # type: ignore[attr-defined]
    main.HeldTable = DyingHeldTable  # type: ignore[attr-defined]
    RunSteps.start = start_dying  # type: ignore[method-assign]
