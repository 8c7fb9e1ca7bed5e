"""A program that enqueues one job after the other, as a user's would."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

from tests.integration.supervisor.groups import ROOT
from tests.integration.supervisor.processes import until

_PROGRAM = """
import os
import sys
from penstock.model.errors import EngineUnavailable
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


class Producer:
    """Says which jobs were acknowledged to it."""

    def __init__(self, url: str, folder: Path) -> None:
        self._stop = folder / "stop-producing"
        self._path = folder / "produced"
        with open(self._path, "wb") as output:
            self._process = subprocess.Popen(
                (sys.executable, "-c", _PROGRAM, str(folder), str(self._stop)),
                cwd=ROOT,
                stdout=output,
                env={**os.environ, "PENSTOCK_URL": url},
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
            self._process.wait()
