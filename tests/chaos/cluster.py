"""The processes of a run: members (`tidemill worker`, each with its own way to the engine) and producers.

Whatever ends is started again after a moment, as a service manager would: with a reason, so that the history
says which deaths nobody asked for.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.chaos import clock, deploy
from tests.chaos.history import Recorder
from tests.chaos.times import Times
from tests.integration.supervisor.processes import children_of, is_gone

ROOT = Path(__file__).parents[2]
APP = "tests.chaos.app:app"
RESTART_S = 0.3
POLL_S = 0.05
PATIENCE_S = 60.0


class Process:
    """One program of a run, as the process that it is now."""

    def __init__(
        self, name: str, folder: Path, command: Callable[[], list[str]], environment: dict[str, str]
    ) -> None:
        self.name = name
        self.wanted = True
        self.clock_file = folder / f"{name}.clock"
        self._folder = folder
        self._command = command
        self._log_path = folder / f"{name}.log"
        self._environment = {**os.environ, "CHAOS_FOLDER": str(folder), "CHAOS_WHO": name, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**self._environment, deploy.VARIABLE: str(deploy.release_of(self._folder, self.name))}
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._command()], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        assert self._process is not None
        return self._process.poll()

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def children(self) -> list[int]:
        """Worker processes that live now."""
        with suppress(OSError):
            return [pid for pid in children_of(self.pid) if not is_gone(pid)]
        return []

    def family(self) -> list[int]:
        return [self.pid, *self.children()]

    def tell(self, number: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """With its children, if it runs."""
        if self._process is not None and self.code is None:
            for pid in self.family():
                send(pid, signal.SIGKILL)

    def close(self) -> None:
        if self._process is not None:
            self._process.wait(PATIENCE_S)


def send(pid: int, number: signal.Signals) -> bool:
    """A signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


class Cluster:
    """All of them."""

    def __init__(
        self, folder: Path, recorder: Recorder, times: Times, *, shifted: bool, environment: dict[str, str]
    ) -> None:
        self._folder = folder
        self._recorder = recorder
        self._times = times
        self._shifted = shifted
        self._environment = environment
        self.members: list[Process] = []
        self.producers: list[Process] = []

    def add_member(self, url: str, slots: int) -> None:
        name = f"m{len(self.members)}"
        times = self._times
        options = [
            "-m", "tests.chaos.member", APP, f"--url={url}", f"--slots={slots}",
            f"--heartbeat={times.heartbeat_s}", f"--lease={times.lease_s}", f"--sweep={times.sweep_s}",
            "--shutdown-timeout=5", "--cancel-grace=1",
        ]  # fmt: skip
        environment = {"TIDEMILL_URL": url, **self._environment}
        clock_file = self._folder / f"{name}.clock"
        if self._shifted:
            clock_file.write_text("0")
            environment[clock.VARIABLE] = str(clock_file)
        member = Process(name, self._folder, lambda: options, environment)
        self.members.append(member)

    def add_producer(self, url: str, seed: int, rate: float) -> None:
        number = len(self.producers)
        starts = iter(range(1_000_000))

        def command() -> list[str]:  # each start is another producer: it repeats nothing
            of_its_own = seed * 1_000 + number * 100 + next(starts)
            return ["-m", "tests.chaos.producer", str(of_its_own), str(rate)]

        environment = {"TIDEMILL_URL": url, **self._environment}
        self.producers.append(Process(f"p{number}", self._folder, command, environment))

    def start(self) -> None:
        for one in (*self.members, *self.producers):
            one.start()

    async def ready(self) -> None:
        """Until every member has a worker process that works."""
        give_up_at = time.monotonic() + PATIENCE_S
        while not all("is ready" in one.log for one in self.members):
            if time.monotonic() > give_up_at:
                raise RuntimeError(
                    "the cluster did not start:\n" + "\n".join(one.log for one in self.members)
                )
            await asyncio.sleep(POLL_S)

    async def keep(self) -> None:
        """Start again what has ended, until cancelled."""
        while True:
            for one in (*self.members, *self.producers):
                if one.code is not None and one.wanted:
                    self._recorder.write("death", text=one.name, pids=[one.pid], number=one.code)
                    await asyncio.sleep(RESTART_S)
                    if one.wanted:  # still
                        one.start()
            await asyncio.sleep(POLL_S)

    async def end_producers(self) -> None:
        await self._end(self.producers)

    async def end_members(self) -> None:
        """In order: nothing changes any more after this."""
        await self._end(self.members)

    async def _end(self, processes: Sequence[Process]) -> None:
        for one in processes:
            one.wanted = False
            one.tell(signal.SIGTERM)
        give_up_at = time.monotonic() + PATIENCE_S
        while left := [one for one in processes if one.code is None]:
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"{left[0].name} does not end: " + left[0].log[-2_000:])
            await asyncio.sleep(POLL_S)

    def close(self) -> None:
        everybody = (*self.producers, *self.members)
        for one in everybody:
            one.wanted = False
            one.kill()
        for one in everybody:
            one.close()
