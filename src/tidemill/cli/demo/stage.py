"""A temporary store with real workers on it, and what a demo finds there.

The worker is a process group of its own, so that a Ctrl-C in the terminal is for the demo alone, which then
ends the worker in order. If the demo itself is killed, its end of the parent pipe closes, and the kernel ends
the worker.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from tidemill.cli.demo.venue import Venue, venue
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect

APP = "tidemill.cli.demo.app:app"
SHORT_PATH = 48
DRAIN_S = 15.0
"""How long a worker may take to stop before it is killed."""


class DemoStage(NamedTuple):
    """Where a demo plays."""

    engine: Engine
    worker: subprocess.Popen[bytes]
    stopped: asyncio.Event
    """The user has pressed Ctrl-C."""
    where: str = ""
    """For people."""

    def check_worker(self) -> None:
        """Raise if the worker has ended: nothing would happen any more."""
        if (code := self.worker.poll()) is not None:
            raise click.ClickException(f"the worker has ended with exit code {code}; its log is above")


Play = Callable[[DemoStage], Awaitable[int]]


def play(work: Play, *, processes: int, slots: int) -> int:
    """Set up the stage, play, clear up; answers the exit code."""
    with (
        TemporaryDirectory(prefix="tidemill-demo-", ignore_cleanup_errors=True) as folder,
        venue(folder) as at,
    ):
        # The application reads its settings as every other does; nothing else of the environment counts here.
        for name in [name for name in os.environ if name.startswith("TIDEMILL_")]:
            del os.environ[name]
        os.environ.update(TIDEMILL_URL=at.url, TIDEMILL_NAMESPACE=at.namespace)
        keep_litter_in(folder)
        log = Path(folder, "worker.log")
        with _worker(log, processes, slots) as worker:
            try:
                return asyncio.run(_play(work, at, worker))
            except click.ClickException:
                click.echo(log.read_text(errors="replace"), err=True)
                raise


def keep_litter_in(folder: str) -> None:
    """Let engines put their sockets here too, so that nothing stays behind. Their paths have to stay short
    (a socket's has about 100 characters), so a folder that lies deep is left alone."""
    if len(folder) <= SHORT_PATH:
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # look again


@contextmanager
def _worker(log: Path, processes: int, slots: int) -> Iterator[subprocess.Popen[bytes]]:
    parent_pipe, ours = os.pipe()
    options = (
        "-p",
        str(processes),
        "-c",
        str(slots),
        "--parent-pipe",
        str(parent_pipe),
        "--shutdown-timeout",
        "5s",
    )
    command = (sys.executable, "-m", "tidemill", "worker", APP, *options)
    with log.open("wb") as output:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=(parent_pipe,),
        )
    os.close(parent_pipe)
    try:
        yield worker
    finally:
        worker.terminate()
        try:
            worker.wait(DRAIN_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        os.close(ours)


async def _play(work: Play, at: Venue, worker: subprocess.Popen[bytes]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with _engine(at) as engine:
        return await work(DemoStage(engine, worker, stopped, at.shown))


@asynccontextmanager
async def _engine(at: Venue) -> AsyncIterator[Engine]:
    """The demo's engine, which its application uses too."""
    from tidemill.app.access.in_worker import AppInWorker
    from tidemill.cli.demo.app import app

    engine = await connect(at.url, namespace=at.namespace)
    let_go = AppInWorker(app).adopt(engine)
    try:
        yield engine
    finally:
        let_go()
        await engine.close()
