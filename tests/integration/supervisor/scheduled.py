"""An app with schedules, for worker groups."""

import os
import signal
import time
from pathlib import Path

from tidemill import Tidemill

app = Tidemill()
FOLDER = Path(os.environ.get("FOLDER", "."))


def note(name: str, text: str) -> None:
    """One line, written at once."""
    with open(FOLDER / name, "a") as file:
        file.write(f"{text}\n")


@app.on_startup(scope="worker")
@app.task
def warm_up() -> None:
    note("warm", str(os.getpid()))


@app.on_startup()
@app.task
def once() -> None:
    note("once", str(os.getpid()))


@app.every(0.1, name="sweep")
@app.task
def sweep() -> None:
    """Notes its beginning and its end. Told to, it takes its process with it."""
    note("sweeps", f"begin {os.getpid()}")
    order = FOLDER / "die"
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    note("sweeps", f"end {os.getpid()}")
