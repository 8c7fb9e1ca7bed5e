"""The app of these tests: tasks that behave, and tasks that do not.

They speak to the test by files in a folder: `note` appends a line, `wait_for` waits for a file.
"""

import asyncio
import faulthandler
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tidemill.app.tidemill import Tidemill
from tidemill.model.jobs.death import DeadJob
from tidemill.task.current import Aborted, current_job
from tidemill.task.later import RetryAfter, Snooze

app = Tidemill()
app.queue("narrow", concurrency=1)

MEMORY_GROUP = Path("/sys/fs/cgroup/memory", f"tidemill-{os.environ.get('PYTEST_XDIST_WORKER', 'test')}")


def note(folder: str, name: str) -> None:
    """One line for each run: which job, in which process."""
    with open(Path(folder, name), "a") as file:
        file.write(f"{current_job().id} {os.getpid()}\n")


def is_there(folder: str, name: str) -> bool:
    return Path(folder, name).exists()


@app.task
async def quick(folder: str) -> str:
    note(folder, "quick")
    return os.environ.get("GROUP", "")


@app.task(queue="graves")
def bury(dead: DeadJob) -> None:
    note(str(dead.args[0]), f"buried {dead.failure.kind} {dead.crashes}")


@app.task
async def nap(folder: str, seconds: float) -> None:
    note(folder, "nap")
    await asyncio.sleep(seconds)


KEPT: list[bytes] = []


@app.task
async def leaks(folder: str, mebibytes: int) -> None:
    """Keeps memory for ever."""
    note(folder, "leaks")
    KEPT.append(b"x" * (mebibytes << 20))


@app.task(runs_in="process")
def leaks_in_process(folder: str, mebibytes: int) -> None:
    note(folder, "leaks")
    KEPT.append(b"x" * (mebibytes << 20))


@app.task
async def wait_for(folder: str, name: str) -> str:
    """Runs until a file is there; answers where it ran."""
    note(folder, "waiting")
    while not is_there(folder, name):  # noqa: ASYNC110  (another process makes it)
        await asyncio.sleep(0.01)
    return os.environ.get("GROUP", "")


@app.task
def wait_in_thread(folder: str, name: str) -> str:
    note(folder, "waiting")
    while not is_there(folder, name):
        time.sleep(0.01)
    return os.environ.get("GROUP", "")


@app.task(runs_in="process")
def wait_in_process(folder: str, name: str) -> str:
    note(folder, "waiting")
    while not is_there(folder, name):
        time.sleep(0.01)
    return os.environ.get("GROUP", "")


@app.task(runs_in="process")
def later_in_process(how: str) -> None:
    """Until its fourth run."""
    if current_job().snoozes < 3:
        raise Snooze(0) if how == "snooze" else RetryAfter(3_600)


@app.task
async def snoozes_and_waits(folder: str, name: str) -> None:
    """Snoozes twice, then waits for a file."""
    note(folder, "waiting")
    if current_job().snoozes < 2:
        raise Snooze(0)
    while not is_there(folder, name):  # noqa: ASYNC110  (another process makes it)
        await asyncio.sleep(0.01)


@app.task(runs_in="process")
def echo(text: str) -> str:
    return text


class Odd(BaseException):
    """Not an `Exception`."""


@app.task(runs_in="process")
def misbehaves(how: str) -> object:
    """In ways that must not end the process it runs in."""
    match how:
        case "exits":
            raise SystemExit(3)
        case "interrupts":
            raise KeyboardInterrupt
        case "odd":
            raise Odd("not an Exception")
        case "recurses":
            return misbehaves(how)
        case "unencodable":
            return object()
        case "too large":
            return "x" * (1 << 21)
        case _:
            return None


@app.task(runs_in="process")
def obedient_process(folder: str) -> None:
    """Notes progress and lines, and stops when it is told to."""
    job = current_job()
    for number in range(3):
        job.log.info("line %d", number)
    job.progress(1, 2, "half")
    note(folder, "waiting")
    while not job.aborted:
        time.sleep(0.01)
    note(folder, f"aborted-{job.aborted}")
    raise Aborted(job.aborted)


@app.task(runs_in="process")
def obeys_sigterm(folder: str, how: str) -> None:
    """In the ways of code that knows nothing of us."""

    def handler(*_: object) -> None:
        match how:
            case "exits":
                sys.exit(0)
            case "raises":
                raise OSError("while it cleaned up")
            case "is gone":
                os._exit(4)

    signal.signal(signal.SIGTERM, signal.SIG_DFL if how == "dies" else handler)
    note(folder, "waiting")
    while True:
        time.sleep(0.01)


@app.task(runs_in="process")
def says(what: str) -> int:
    """Notes that are hard to send."""
    job = current_job()
    job.log.info("first")  # sent at once: what follows waits together
    match what:
        case "half a character":
            job.log.info("file \udcff")
        case "long lines":
            for _ in range(900):
                job.log.info("x" * 20_000)
        case "long lines of control characters":
            for _ in range(900):
                job.log.info("\x01" * 20_000)
        case "long progress":
            job.progress(1, 2, "\x01" * (9 << 20))
        case "a long error":
            raise ValueError("x" * (9 << 20))
        case "an error with half a character":
            raise ValueError("file \udcff")
    return os.getpid()


def leave_a_thread() -> None:
    """One for which the interpreter would wait at its end."""
    threading.Thread(target=time.sleep, args=(1_000,)).start()


@app.task
async def leaves_a_thread() -> None:
    leave_a_thread()


@app.task
async def outlived_by_a_thread(folder: str) -> None:
    note(folder, "waiting")
    await asyncio.to_thread(time.sleep, 1_000)


@app.task
async def breaks_the_loop(folder: str) -> None:
    """And leaves a thread: the process has no loop any more, and would not end either."""
    note(folder, "breaks")
    leave_a_thread()
    asyncio.get_running_loop().call_soon(sys.exit, 3)
    await asyncio.sleep(1_000)


@app.task
async def starts_a_program(folder: str) -> None:
    """Leaves a program of its own running."""
    program = subprocess.Popen(("sleep", "1000"))  # noqa: ASYNC220  (returns at once)
    with open(Path(folder, "program"), "w") as file:  # noqa: ASYNC230
        file.write(str(program.pid))
    await asyncio.sleep(1_000)


@app.task
async def poison(folder: str, kind: str) -> None:
    """Takes its process with it, while others run in it."""
    note(folder, "poison")
    await asyncio.sleep(0.05)
    crash(kind)


@app.task(runs_in="process")
def poison_in_process(folder: str, kind: str) -> None:
    note(folder, "poison")
    crash(kind)


def crash(kind: str) -> None:
    """In every way there is."""
    match kind:
        case "exit":
            os._exit(3)
        case "exit 0":
            os._exit(0)
        case "segfault":
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            import ctypes

            ctypes.string_at(0)
        case "abort":
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "memory":
            out_of_memory()


def out_of_memory() -> None:
    """The kernel kills whoever eats more than its group has. Where no group can be made: what it would do."""
    eaten: list[bytearray] = []
    with suppress(OSError):
        MEMORY_GROUP.mkdir(exist_ok=True)
        (MEMORY_GROUP / "memory.limit_in_bytes").write_text(str(100 << 20))
        (MEMORY_GROUP / "cgroup.procs").write_text(str(os.getpid()))
        while len(eaten) < 400:
            eaten.append(bytearray(os.urandom(1 << 20)))
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(runs_in="process")
def eats_memory(folder: str) -> None:
    """Within a limit of its own, in the way of a container without swap: MemoryError."""
    note(folder, "eats")
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (64 << 20), resource.RLIM_INFINITY))
    eaten = []
    while True:
        eaten.append(bytearray(8 << 20))


@app.task
def holds_the_gil(folder: str, length: int) -> None:
    """No other thread of the process gets a turn: about 2**length steps in one call of C."""
    note(folder, "gil")
    re.match(r"(a+)+$", "a" * length + "b")


@app.task
async def blocks_the_loop(folder: str, seconds: float) -> None:
    note(folder, "blocks")
    time.sleep(seconds)  # noqa: ASYNC251  (that is the point)


@app.task
async def ignores_cancellation(folder: str) -> None:
    note(folder, "ignores")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1_000)


@app.task
def ignores_the_flag(folder: str) -> None:
    note(folder, "ignores")
    while True:
        time.sleep(0.05)
