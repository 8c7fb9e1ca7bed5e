"""Other processes: they say what they have reached, and wait to be told to go on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60


class Child:
    """A Python program. It prints one word a line; it reads a line when it waits."""

    def __init__(self, program: str, *args: object) -> None:
        command = (sys.executable, "-u", "-c", program, *map(str, args))
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid

    def read(self) -> str:
        """The next line; "" once it has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def go_on(self) -> None:
        """Let it go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """At once."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def end(self) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait(PATIENCE_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def child(program: str, *args: object) -> Iterator[Child]:
    """A child that does not outlive the test."""
    process = Child(program, *args)
    try:
        yield process
    finally:
        process.close()


HOLDS_THE_LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked")
input()
db.execute("ROLLBACK")
print("free")
input()
"""
