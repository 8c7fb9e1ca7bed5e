"""Programs that a test starts and talks to."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 30.0


@contextmanager
def running(command: Sequence[str], **options: Any) -> "Iterator[subprocess.Popen[Any]]":
    """`with subprocess.Popen(...)` waits for an end that may never come, after a failed test above all: here
    the program is killed, if it has not ended."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
