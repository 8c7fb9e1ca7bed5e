"""A pytest plugin: a test run leaves none of its processes behind.

Every process that a run starts inherits a mark in its environment. When the tests are over, whoever still
carries it is ended, and the run fails: such a process works on in a place that is gone, and keeps the pipe
open to whoever reads what the run prints. (A server that overwrites its environment with its title is not
seen; servers write to files.) Where there is no /proc, nothing is looked for.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import leash
from tests.leash import MARK

GRACE_S = 5.0
"""How long those may take that were told to end by the last tests."""


def pytest_configure(config: pytest.Config) -> None:
    """The process that was started first looks; its test processes, and runs inside tests, carry its mark."""
    mark = leash.hold()
    if mark is not None:
        config.pluginmanager.register(Leftovers(mark))


class Leftovers:
    """The look of one run."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._found: list[str] = []

    @pytest.hookimpl(trylast=True)  # xdist has ended its test processes by then
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        end = time.monotonic() + GRACE_S
        while (pids := list(carrying(self._mark))) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in pids:
            self._found.append(describe(pid))
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if self._found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._found:
            terminalreporter.section("processes that tests have left behind", red=True)
            for line in self._found:
                terminalreporter.line(line)


def carrying(mark: str) -> Iterator[int]:
    """The other processes of a run, but for zombies, which have no environment any more."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        with suppress(OSError):
            if pid != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield pid


def describe(pid: int) -> str:
    """Its number and its command line."""
    with suppress(OSError):
        return f"{pid}: " + Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(
            errors="replace"
        )
    return str(pid)
