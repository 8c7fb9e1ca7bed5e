"""Worker groups as real processes, and what the engine says of the jobs."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.integration.supervisor.processes import children_of, is_stopped, until
from tidemill.engine.protocol import Engine
from tidemill.model.event import waiter_topic
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import FINAL, JobRecord, JobState, NewJob
from tidemill.model.time import span_of
from tidemill.model.view import QueueCounts
from tidemill.worker.config import WorkerConfig

ROOT = Path(__file__).parents[3]
APP = "tests.integration.supervisor.app:app"
PATIENCE_S = 60.0
TASKS = "tests.integration.supervisor.app."
QUEUE = "default"

SUPERVISES = """
import sys
import msgspec
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.supervisor import supervise
sys.exit(supervise(msgspec.json.decode(sys.argv[1], type=WorkerConfig)))
"""


class Group:
    """A supervisor with its worker processes."""

    def __init__(
        self,
        config: WorkerConfig,
        folder: Path,
        name: str,
        environment: dict[str, str],
        program: str = SUPERVISES,
    ) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-c", program, msgspec.json.encode(config).decode()),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TIDEMILL_URL": config.url, "GROUP": name, **environment},
            )
        self.pid = self._process.pid
        self._url = config.url

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    @property
    def workers(self) -> list[int]:
        """The processes that live now."""
        return children_of(self.pid)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def ready(self, processes: int = 1) -> "Group":
        """Wait until this many processes have said so since the start."""
        await until(lambda: self.log.count("is ready") >= processes or not self.alive)
        assert self.alive, self.log
        return self

    def kill(self) -> None:
        """The supervisor, with -9."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def send_signal(self, number: signal.Signals) -> None:
        """A signal to the supervisor."""
        os.kill(self.pid, number)

    def freeze(self, *pids: int) -> None:
        """SIGSTOP of these processes, or of all. Not in the middle of a write to a file: its lock would keep
        all others out for as long as the process is stopped."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            stopped = pids or (self.pid, *self.workers)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            while not all(map(is_stopped, stopped)):
                pass
            if can_be_written(self._url):
                return
            assert time.monotonic() < give_up_at, "it writes all the time"
            self.thaw(*stopped)

    def thaw(self, *pids: int) -> None:
        for pid in pids or (self.pid, *self.workers):
            os.kill(pid, signal.SIGCONT)

    async def ended(self) -> int:
        """Its exit code."""
        return await asyncio.to_thread(self._process.wait, PATIENCE_S)

    async def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.send_signal(signal.SIGTERM)
        return await self.ended()

    def close(self) -> None:
        if self.alive:
            for pid in (self.pid, *self.workers):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait(PATIENCE_S)


def can_be_written(url: str) -> bool:
    """Whether nobody holds the lock of the file, if it is one."""
    if not url.startswith("sqlite:///"):
        return True
    with closing(sqlite3.connect(urlsplit(url).path[1:], timeout=0, isolation_level=None)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        db.execute("ROLLBACK")
    return True


def a_config(url: str, **options: Any) -> WorkerConfig:
    """With the times of tests."""
    times = {
        "heartbeat_s": 0.2,
        "lease_s": 1.0,
        "sweep_s": 0.2,
        "poll_s": 0.5,
        "stuck_after_s": 0.5,
        "stuck_grace_s": 0.5,
        "cancel_grace_s": 0.5,
        "shutdown_timeout_s": 20.0,
    }
    return WorkerConfig(**{"url": url, "app": APP, "queues": (QUEUE,), **times, **options})


def a_job(task: str, *args: object, **options: Any) -> NewJob:
    """A job of the app."""
    body = json.dumps([args, {}]).encode()
    return NewJob(**{"id": new_id(), "task": TASKS + task, "queue": QUEUE, "body": body, **options})


async def enqueue(engine: Engine, *jobs: NewJob) -> list[JobId]:
    for start in range(0, len(jobs), 1_000):
        await engine.jobs.enqueue(jobs[start : start + 1_000])
    return [job.id for job in jobs]


async def get(engine: Engine, ids: Sequence[JobId]) -> list[JobRecord]:
    found = []
    for start in range(0, len(ids), 1_000):
        found += await engine.inspect.get(ids[start : start + 1_000])
    assert all(found), "a job was lost"
    return [job for job in found if job is not None]


async def finished(engine: Engine, ids: Sequence[JobId], patience_s: float = PATIENCE_S) -> list[JobRecord]:
    """The jobs once all have ended, woken by the engine's own signals."""
    waiter, give_up_at = new_id().hex(), time.monotonic() + patience_s
    subscription = await engine.signals.subscribe(waiter_topic(waiter))
    for start in range(0, len(ids), 1_000):
        await engine.jobs.watch(ids[start : start + 1_000], waiter=waiter, ttl=span_of(patience_s))
    try:
        while not _all_ended(jobs := await get(engine, ids)):
            assert time.monotonic() < give_up_at, states(jobs)
            await subscription.next(1.0)
            await asyncio.sleep(0.001 * len(ids) ** 0.5)  # many end together: poll once for some of them
    finally:
        await subscription.close()
    return jobs


async def counts_by_queue(engine: Engine) -> dict[str, QueueCounts]:
    """The app declares queues of its own: they are there, empty."""
    return {counts.queue: counts for counts in await engine.inspect.counts()}


def _all_ended(jobs: Sequence[JobRecord]) -> bool:
    return all(job.state in FINAL for job in jobs)


async def in_state(engine: Engine, ids: Sequence[JobId], state: JobState) -> list[JobRecord]:
    """The jobs once all are in this state: not a final one, so nobody signals it to us."""
    give_up_at = time.monotonic() + PATIENCE_S
    while states(jobs := await get(engine, ids)) != {state.value: len(ids)}:
        assert time.monotonic() < give_up_at, states(jobs)
        await asyncio.sleep(0.01)
    return jobs


def states(jobs: Sequence[JobRecord]) -> Counter[str]:
    return Counter(job.state.value for job in jobs)


def noted(folder: Path, name: str) -> list[str]:
    """The runs that a task noted: the ids of their jobs."""
    path = folder / name
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def noted_pids(folder: Path, name: str) -> list[int]:
    path = folder / name
    return [int(line.split()[1]) for line in path.read_text().splitlines()] if path.exists() else []
