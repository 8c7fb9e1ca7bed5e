"""A peer's workers as the kernel sees them: whole trees of processes."""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tidemill.cli.bench.workers import cpu_s_of

STOP_S = 15.0
LOG_LINES = 4


class PeerFailed(Exception):
    """A peer did not do what was asked of it; the report says what it said."""


class Workers:
    """Copies of one command, each with whatever processes it starts. `start` them, `stop` or `kill` them."""

    def __init__(self, commands: Sequence[Sequence[str]], environment: Mapping[str, str], log: Path) -> None:
        self._commands, self._environment, self._log = commands, environment, log
        self._roots: list[asyncio.subprocess.Process] = []

    async def start(self) -> None:
        with open(self._log, "ab") as log:  # noqa: ASYNC230  (a local file, opened once)
            for command in self._commands:
                root = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                    cwd=self._log.parent,
                    start_new_session=True,
                )
                self._roots.append(root)

    def check(self) -> None:
        """Raise if one of them has ended by itself."""
        for root in self._roots:
            if root.returncode is not None:
                raise PeerFailed(f"a worker ended with code {root.returncode}: {self.last_words()}")

    def last_words(self) -> str:
        return " | ".join(self._log.read_text(errors="replace").strip().splitlines()[-LOG_LINES:])

    def pause(self) -> None:
        """Stop all of them where they are: parents first, so that none is missed as gone."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    async def kill(self) -> None:
        """kill -9 of all at once; stopped first, so that none can tidy up after another."""
        pids = self.pids()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        await self._gone()

    async def stop(self) -> None:
        """As an operator does; who does not end in time is killed."""
        for root in self._roots:
            with suppress(ProcessLookupError):
                root.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await self._gone()
        except TimeoutError:
            await self.kill()

    async def _gone(self) -> None:
        for root in self._roots:
            await root.wait()
        self._roots.clear()

    def _signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def pids(self) -> list[int]:
        found = [root.pid for root in self._roots if root.returncode is None]
        for pid in found:  # grows while it is walked
            found += _children(pid)
        return found

    def cpu_s(self) -> float:
        """Processor time of all of them so far."""
        return sum(cpu_s_of(pid, with_ended_children=True) for pid in self.pids())

    def memory_mb(self) -> float:
        """Memory of all of them; pages that they share count once, in shares."""
        return sum(map(_proportional_kb, self.pids())) / 1024


def _children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return []


def _proportional_kb(pid: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        return parse_proportional_kb(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return 0


def parse_proportional_kb(rollup: str) -> int:
    found = re.search(r"^Pss:\s+(\d+) kB$", rollup, re.MULTILINE)
    return int(found[1]) if found else 0
