"""The app of these tests while somebody deploys: it cannot be imported as long as the file `BROKEN` is there.

`LIMITED_TO` is how many of the queue `limited` its release lets run at once. `LINGERS` makes it start a
thread that never ends, as a library might. `LEAVES` names a file: whoever removes it has an engine that
breaks, so that its process leaves by its own decision.
"""

import os
from pathlib import Path
from typing import Any

from tests.integration.supervisor.app import app, leave_a_thread
from tidemill.engine.registry import connect
from tidemill.worker.process import main

__all__ = ["app"]

if "LIMITED_TO" in os.environ:
    app.queue("limited", concurrency=int(os.environ["LIMITED_TO"]))
if "LINGERS" in os.environ:
    leave_a_thread()
if Path(os.environ.get("BROKEN", "/no/such/file")).exists():
    raise ImportError("half of it is there")


def is_to_leave() -> bool:
    try:
        Path(os.environ["LEAVES"]).unlink()
    except FileNotFoundError:
        return False
    return True


class BreakingJobs:
    """The `jobs` facet, whose claims break once."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    async def claim(self, request: Any, **options: Any) -> Any:
        if is_to_leave():
            raise ZeroDivisionError("a fault of our own")
        return await self._jobs.claim(request, **options)


class BreakingEngine:
    """An engine with that facet."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.jobs = BreakingJobs(engine.jobs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def connect_breaking(*args: Any, **options: Any) -> Any:
    return BreakingEngine(await connect(*args, **options))


if "LEAVES" in os.environ:
    main.connect = connect_breaking  # type: ignore[attr-defined]
