"""A pytest plugin: a run that is interrupted says which tests were under way, and for how long.

A gate that hangs is ended by a signal. Without these lines nobody would know where it hung.
"""

import time

import pytest


class UnderWay:
    """The tests that have begun and not ended, in all processes of a run."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._ended = 0
        self._last_end = time.monotonic()
        self._interrupted = False

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._began[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._began.pop(nodeid, None)
        self._ended += 1
        self._last_end = time.monotonic()

    def pytest_keyboard_interrupt(self) -> None:
        self._interrupted = True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._interrupted:
            return
        now = time.monotonic()
        terminalreporter.section("under way when the run was interrupted", red=True)
        terminalreporter.line(f"{self._ended} tests had ended, the last {now - self._last_end:.0f} s ago")
        for nodeid, began in sorted(self._began.items(), key=lambda item: item[1]):
            terminalreporter.line(f"{now - began:6.0f} s  {nodeid}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that prints the report receives the news of all
        config.pluginmanager.register(UnderWay())
