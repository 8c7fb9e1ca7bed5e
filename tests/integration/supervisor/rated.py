"""The app of the tests of rates: tasks that call an API outside. It notes when it was called, in the first
line of the function, by the one clock of the machine."""

import asyncio
import os
from pathlib import Path

from tidemill.app.tidemill import Tidemill
from tidemill.engine.boot import boot_ns
from tidemill.model.queues.queue import Rate

app = Tidemill()
BURSTS, SMOOTH, SHARED = Rate(90, per=1.5), Rate(25, per=1.0, smooth=True), "shared"
app.queue("bursts", rate=BURSTS)
app.queue("smooth", rate=SMOOTH)
app.queue(SHARED, concurrency=5)


@app.task(queue="bursts")
async def call_on_the_loop(folder: str) -> None:
    note(folder, "bursts", boot_ns())


@app.task(queue="bursts")
def call_in_a_thread(folder: str) -> None:
    note(folder, "bursts", boot_ns())


@app.task(queue="bursts", runs_in="process")
def call_in_a_process(folder: str) -> None:
    note(folder, "bursts", boot_ns())


@app.task(queue="smooth")
async def send(folder: str) -> None:
    note(folder, "smooth", boot_ns())


def note(folder: str, name: str, moment_ns: int) -> None:
    """One line, written at once: the API's own log."""
    log = os.open(Path(folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{moment_ns} {os.getpid()}\n".encode())
    os.close(log)


@app.task(queue=SHARED)
async def take_a_while(folder: str) -> None:
    note(folder, SHARED, boot_ns())
    await asyncio.sleep(0.05)
