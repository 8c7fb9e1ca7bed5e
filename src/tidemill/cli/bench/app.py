"""The tasks that are measured: they do nothing."""

import time

from tidemill import Tidemill

app = Tidemill()

PAYLOAD = "x" * 202
"""Makes a body of 210 bytes, as in the measurements of the engines."""


@app.task(name="tidemill.bench.loop")
async def in_loop(payload: str) -> None:
    """Nothing, on the worker's loop."""


@app.task(name="tidemill.bench.thread")
def in_thread(payload: str) -> None:
    """Nothing, in a thread."""


@app.task(name="tidemill.bench.stamp")
async def stamp() -> int:
    """The moment of its start, by the clock that all processes of a machine share."""
    return time.monotonic_ns()
