"""A run of tests that is killed takes along what it has started."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.leash import MARK, SERVERS, belonging_to

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60

STARTS_AND_DIES = """
import os, shutil, signal, subprocess, tempfile
from tests import leash
print(leash.hold(), flush=True)
stopped = subprocess.Popen(("sleep", "1000"), start_new_session=True)
stopped.send_signal(signal.SIGSTOP)
subprocess.Popen(("sh", "-c", "sleep 1000 & sleep 1000"))
folder = tempfile.mkdtemp(prefix=leash.label(), dir="FOLDER")
os.symlink(shutil.which("sleep"), "FOLDER/redis-server")
subprocess.Popen(("redis-server", "1000"), cwd=folder, env={}, executable="FOLDER/redis-server")
os.kill(os.getpid(), signal.SIGKILL)
"""

FORKS_AND_DIES = """
import os, signal, subprocess, time
from tests import leash
mark = leash.hold()
left = subprocess.Popen(("sleep", "1000"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
ours, theirs = os.pipe()
if not os.fork():
    again = os.dup(theirs)  # may well get the number of what was let go
    if not os.fork():
        os.write(again, b".")
        give_up_at = time.monotonic() + FORK_S
        while leash.belonging_to(mark) and time.monotonic() < give_up_at:
            time.sleep(0.01)
        print("left" if leash.belonging_to(mark) else "ended", flush=True)
        left.kill()
    os._exit(0)
os.close(theirs)
os.read(ours, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""
FORK_S = 20
"""How long the fork lives at most: longer than a watcher takes."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are told apart by /proc"
)


def killed_run(program: str) -> tuple[int, str]:
    """Its exit code, and all that it and its children had to say."""
    killed = subprocess.run(
        (sys.executable, "-c", program),
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != MARK},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=False,
    )
    return killed.returncode, killed.stdout.decode().strip()


def test_whoever_reads_the_output_of_a_killed_run_sees_its_end(tmp_path: Path) -> None:
    """All its children had that too: one stopped, one with children, one that works as a server does."""
    code, mark = killed_run(STARTS_AND_DIES.replace("FOLDER", str(tmp_path)))
    assert (code, len(mark)) == (-signal.SIGKILL, 32)
    give_up_at = time.monotonic() + PATIENCE_S
    while left := belonging_to(mark):
        assert time.monotonic() < give_up_at, left


def test_a_fork_that_lives_on_keeps_nobody_from_tidying_up() -> None:
    assert killed_run(FORKS_AND_DIES.replace("FORK_S", str(FORK_S))) == (-signal.SIGKILL, "ended")


@pytest.mark.parametrize("name", [*SERVERS, "psql", "sh"])
def test_of_those_in_a_folder_of_a_run_only_servers_belong_to_it(tmp_path: Path, name: str) -> None:
    mark = uuid4().hex
    folder = tmp_path / f"tidemill-run-{mark[:8]}-postgres-x"
    folder.mkdir()
    program = tmp_path / name
    program.symlink_to(shutil.which("sleep") or "")
    standing = subprocess.Popen((name, "1000"), cwd=folder, env={}, executable=program)
    try:
        assert belonging_to(mark) == ([standing.pid] if name in SERVERS else [])
    finally:
        standing.kill()
        standing.wait(PATIENCE_S)
