"""The leash: nothing that a run of tests has started outlives it, also if it is killed.

A run that comes to its end looks for what it has left (`leftovers`). One that is killed can tidy up nothing:
servers, stopped members of a cluster and their children would stay, some with the run's output in their
hands, so that whoever reads that waits for ever.

So the run has a watcher: a small process with one end of a pipe, of which the run holds the other. When that
closes, the watcher kills whatever belongs to the run, stopped processes too, and takes down its disks. A
process belongs to a run by the mark in its environment, which it inherits; a server, which may overwrite that
with its title, by its name and the folder in which it works. (Others may stand there too: somebody's shell.)

    python -S leash.py MARK     the watcher
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

MARK = "TIDEMILL_TEST_RUN"
"""Of the environment."""
START_S = 60
ROUNDS, PAUSE_S = 40, 0.05
"""What is killed may just have started something: the watcher looks again, until nothing is found."""
SIGKILL = 9
SERVERS = ("postgres", "redis-server", "valkey-server", "pgbouncer")
"""How the names of those begin that are told by their folder. The kernel keeps fifteen characters."""


def hold() -> str | None:
    """From now on. The mark, if this process is the one that the run began with; what is started from here
    belongs to the same run."""
    if MARK in os.environ:
        return None
    mark = os.environ[MARK] = uuid4().hex
    theirs, ours = os.pipe()  # ours stays open as long as this process lives, and no child keeps it
    subprocess.run(
        [sys.executable, "-S", __file__, mark],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        start_new_session=True,
        check=True,
        timeout=START_S,
    )
    os.close(theirs)
    _let_go_in_forks(ours)
    return mark


def _let_go_in_forks(end: int) -> None:
    """Whatever is executed does not inherit it; a fork does, and would be waited for. Once: in a fork of a
    fork the number may be of another file."""
    held = [end]

    def let_go() -> None:
        while held:
            with suppress(OSError):  # who became a service of its own has closed everything already
                os.close(held.pop())

    os.register_at_fork(after_in_child=let_go)


def label() -> str:
    """For names of folders and disks of this run."""
    return _label(os.environ.get(MARK, "none"))


def _label(mark: str) -> str:
    return f"tidemill-run-{mark[:8]}"


def belonging_to(mark: str) -> list[int]:
    """The processes of a run, but for zombies."""
    entry, folder = f"{MARK}={mark}".encode(), _label(mark)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone in this moment, or a stranger's
            if entry in (process / "environ").read_bytes().split(b"\0") or (
                folder in os.readlink(process / "cwd") and _is_server(process)
            ):
                found.append(int(process.name))
    return found


def _is_server(process: Path) -> bool:
    return (process / "comm").read_text().startswith(SERVERS)


def watch(mark: str) -> None:
    """Until the run has ended; then end what it has left."""
    while os.read(0, 1):
        pass
    for _ in range(ROUNDS):
        left = belonging_to(mark)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, SIGKILL)
        if not left:
            break
        time.sleep(PAUSE_S)
    for line in Path("/proc/mounts").read_text().splitlines():
        source, place, *_ = line.split()
        if source == _label(mark):
            subprocess.run(("umount", "--lazy", place), check=False, timeout=60)


if __name__ == "__main__":
    if not os.fork():  # nobody's child: tests look at the children that they have
        watch(sys.argv[1])
