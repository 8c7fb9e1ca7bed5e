"""Workers and a producer, each a program of its own, for tests that break the way to their engine.

Nobody of them is killed, so each job is to run once: what was claimed is kept through an outage, and a call
whose answer was lost is repeated under its number. Whatever was acknowledged ends, once.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import ROOT, Group, counts_by_queue, finished, noted, states
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.ids import show_id

PATIENCE_S = 30.0

Groups = Callable[[str], StartGroup]
Open = Callable[..., Any]

_PROGRAM = """
import os
import sys
from tidemill.model.errors import EngineUnavailable
from tests.integration.supervisor.app import app, quick

folder, stop = sys.argv[1:]
while not os.path.exists(stop):
    try:
        job = quick.enqueue(folder)
    except EngineUnavailable:  # not acknowledged: it is not known whether it was stored
        continue
    print(job.id, flush=True)
app.close()
"""


async def until_it_works(call: Any) -> Any:
    """Repeat a call as its callers do."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except EngineUnavailable:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)


class Producer:
    """A program that enqueues one job after the other, and says which were acknowledged to it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._stop = folder / "stop-producing"
        self._path = folder / "produced"
        with open(self._path, "wb") as output:
            self._process = subprocess.Popen(
                (sys.executable, "-c", _PROGRAM, str(folder), str(self._stop)),
                cwd=ROOT,
                stdout=output,
                env={**os.environ, "TIDEMILL_URL": url},
            )

    @property
    def acknowledged(self) -> list[bytes]:
        return [UUID(line).bytes for line in self._path.read_text().splitlines()]

    async def goes_on(self, jobs: int = 20) -> None:
        """Wait for some more."""
        enough = len(self.acknowledged) + jobs
        await until(lambda: len(self.acknowledged) >= enough or self._process.poll() is not None)
        assert self._process.poll() is None

    async def end(self) -> list[bytes]:
        """Stop it; everything that it had an answer for."""
        self._stop.touch()
        assert await asyncio.to_thread(self._process.wait, 30) == 0
        return self.acknowledged

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)


class Business:
    """Two worker processes and a producer at one place."""

    def __init__(
        self, engine: Engine, start: StartGroup, group: Group, producer: Producer, folder: Path
    ) -> None:
        self._engine = engine
        self._start = start
        self.group = group
        self.producer = producer
        self._folder = folder

    async def goes_on(self) -> None:
        """Wait until more was enqueued and more has run."""
        await self.producer.goes_on()
        ran = len(noted(self._folder, "quick"))
        await until(lambda: len(noted(self._folder, "quick")) >= ran + 20)

    async def another_group(self) -> Group:
        """More workers at the same place."""
        return await self._start("other", processes=1).ready()

    async def ends_well(self) -> None:
        """Everything acknowledged has ended once; nothing ran or was counted twice; nobody lost a job."""
        ids = await self.producer.end()
        jobs = await until_it_works(lambda: finished(self._engine, ids))
        assert states(jobs) == {"completed": len(ids)}
        await until_it_works(self.is_quiet)
        ran = noted(self._folder, "quick")
        assert len(ran) == len(set(ran))
        assert set(ran) >= {show_id(job_id) for job_id in ids}
        queue = (await until_it_works(lambda: counts_by_queue(self._engine)))["default"]
        assert (queue.completed, queue.window.completed) == (len(ran), len(ran))
        assert {(job.attempts, job.lost_runs, job.failure_count) for job in jobs} == {(1, 0, 0)}
        assert "is gone" not in self.group.log
        assert "came too late" not in self.group.log
        assert await self.group.stop() == 0

    async def is_quiet(self) -> None:
        """Also what was stored and not acknowledged has ended."""
        async with asyncio.timeout(PATIENCE_S):
            while any(each.ready + each.running for each in await self._engine.inspect.counts()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@pytest.fixture
def business(groups: Groups, tmp_path: Path) -> Iterator[Open]:
    """Opens one, with an engine for the test to look by."""
    producers: list[Producer] = []

    async def at(url: str, engine: Engine) -> Business:
        start = groups(url)
        group = await start(processes=2, slots=4).ready(2)
        producers.append(Producer(url, tmp_path))
        opened = Business(engine, start, group, producers[-1], tmp_path)
        await opened.goes_on()
        return opened

    yield at
    for producer in producers:
        producer.close()
