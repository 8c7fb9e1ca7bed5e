"""The app of a run: tasks that write down when they start and end, and tasks that misbehave.

Loaded in a worker process of a run it also opens the engine through `recording`, and plants the bug that the
run is about, if it is about one. `CHAOS_FOLDER` says where the history goes; without it nothing is patched.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

from tests.chaos import clock, deploy, plants
from tests.chaos.history import Recorder
from tests.chaos.queues import DECLARED, FAIR, KEYED, NARROW, NIP, VALVE, valve_here
from tests.chaos.recording import connect_recorded
from tests.chaos.swap import swap
from tests.chaos.weather import Weather
from tidemill import DeadJob, Retry, Tidemill, current_job
from tidemill.model.queues.queue import Keep
from tidemill.worker.process import main

MOST_ATTEMPTS = 4
DOOMED_ATTEMPTS = 2
KEYS = 5
EVERY_SECOND, INTERVAL = "every-second", "interval"
"""The schedules."""
INTERVAL_S = 0.3
LAPS_S = (0.02, 0.1, 0.6)

app = Tidemill(retry=Retry(attempts=MOST_ATTEMPTS, base=0.05, cap=0.5))
_ALL = Keep()
for queue in ("default", "slow"):
    app.queue(queue, keep_completed=_ALL, keep_dead=_ALL, keep_cancelled=_ALL)
for queue, said in {**DECLARED, VALVE: {"concurrency": valve_here()}}.items():
    app.queue(queue, **said, keep_completed=_ALL, keep_dead=_ALL, keep_cancelled=_ALL)

_recorder: Recorder | None = None
if "CHAOS_FOLDER" in os.environ:
    _folder, _who = Path(os.environ["CHAOS_FOLDER"]), os.environ["CHAOS_WHO"]
    _recorder = Recorder(_folder, _who)
    swap(main, "connect", connect_recorded(_recorder, Weather(_folder / f"{_who}.weather")))
    clock.shift_from_environment()
    plants.plant_from_environment()
    deploy.upgrade_from_environment()


def _note(kind: str, text: str = "") -> int:
    job = current_job()
    if _recorder is not None:
        _recorder.write(
            kind, jobs=[job.job_id.hex()], fences=[job.fence], number=job.attempt,
            task=job.task.rpartition(".")[2], key=job.key or "", text=text,
        )  # fmt: skip
    return job.fence


async def _sleep(seconds: float) -> int:
    _note("start")
    await asyncio.sleep(seconds)
    return _note("end")


@app.task
async def quick() -> int:
    """Each returns its fence: the result tells whose outcome was recorded."""
    _note("start")
    return _note("end")


@app.task
async def nap(seconds: float) -> int:
    return await _sleep(seconds)


@app.task
def toil(seconds: float) -> int:
    """In a thread."""
    _note("start")
    time.sleep(seconds)
    return _note("end")


@app.task(queue="slow", runs_in="process")
def apart(seconds: float) -> int:
    _note("start")
    time.sleep(seconds)
    return _note("end")


@app.task(queue="slow")
async def hog(seconds: float) -> int:
    """Blocks its loop: nobody loses a lease over it."""
    _note("start")
    time.sleep(seconds)  # noqa: ASYNC251
    return _note("end")


@app.task(queue=KEYED, key="who")
async def share(who: str, seconds: float) -> int:
    """Only so many of one key at once."""
    return await _sleep(seconds)


@app.task(queue=FAIR, key="tenant")
async def serve(tenant: str, seconds: float) -> int:
    """The tenants take turns."""
    return await _sleep(seconds)


@app.task(queue=NARROW)
async def squeeze(seconds: float) -> int:
    return await _sleep(seconds)


@app.task(queue=NARROW, name=NIP)
async def nip(seconds: float) -> int:
    """Has a limit of its own, in the queue that has one."""
    return await _sleep(seconds)


@app.task(queue=VALVE)
async def flow(seconds: float) -> int:
    """Its queue's options change during the run."""
    return await _sleep(seconds)


@app.task(key="who", unique="who", on_conflict="refuse")
async def single(who: str, seconds: float) -> int:
    """Never two live ones of one unique key."""
    return await _sleep(seconds)


@app.task
async def flaky(failures: int) -> int:
    _note("start")
    if current_job().attempt <= failures:
        _note("end", "raises")
        raise OSError("not yet")
    return _note("end")


@app.task(retry=Retry(attempts=DOOMED_ATTEMPTS, base=0.05))
async def doomed() -> None:
    _note("start")
    _note("end", "raises")
    raise ValueError("never")


@app.task(timeout=0.3, retry=Retry(attempts=DOOMED_ATTEMPTS, base=0.05))
async def overruns() -> None:
    _note("start")
    await asyncio.sleep(60)


@app.task
async def poison() -> None:
    """Takes its process with it."""
    _note("start")
    await asyncio.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)


@app.cron("* * * * * *", missed="all", overlap="allow", keep=None, name=EVERY_SECOND)
@app.task
async def tock() -> int:
    """One for every second, also of those in which nobody could fire it."""
    _note("start")
    return _note("end")


@app.every(INTERVAL_S, keep=None, name=INTERVAL)
@app.task
async def lap() -> int:
    """Often longer than its interval, and never two at once."""
    fence = _note("start")
    await asyncio.sleep(LAPS_S[fence % len(LAPS_S)])
    return _note("end")


@app.on_dead()
@app.task
async def bury(dead: DeadJob) -> int:
    """Whatever dies is handled, once for each death."""
    _note("start")
    return _note("end", dead.id)


ENDS_COMPLETED = (
    "bury", "quick", "nap", "toil", "apart", "hog", "share", "serve", "squeeze", "nip", "flow", "single",
    "flaky", "tock", "lap",
)  # fmt: skip
ENDS_DEAD = ("doomed", "overruns", "poison")
