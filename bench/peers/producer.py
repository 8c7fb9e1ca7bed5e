"""A peer's producer: a process that enqueues what it is told to (`programs/errands.py`)."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers.processes import PeerFailed

PATIENCE_S = 180.0
END_S = 10.0
LAST_LINES = 4


class Producer:
    """One that listens."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process, self._log = process, log

    async def ask(self, what: str, **options: object) -> dict[str, Any]:
        """Send it on an errand and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **options}).encode() + b"\n")
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = await self._process.stdout.readline()
        except TimeoutError:
            raise PeerFailed(f"{what} took more than {PATIENCE_S:g} s") from None
        if not line:
            said = self._log.read_text(errors="replace").strip().splitlines()[-LAST_LINES:]
            raise PeerFailed(f"the producer failed at {what}: {' | '.join(said)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def producing(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> AsyncIterator[Producer]:
    """Start a producer, and end it."""
    with open(log, "ab") as file:  # noqa: ASYNC230  (a local file, opened once)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=file,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
            limit=1 << 22,
        )
    try:
        yield Producer(process, log)
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
