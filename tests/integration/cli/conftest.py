"""Commands, in this process and in processes of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click.testing
import pytest

from tests.engines import SHARED, fresh_url
from tests.integration.cli.store import Store
from tidemill.cli import main


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine, and how it runs. (In memory there is nothing for a second process to look at.)"""
    mode: str = request.param
    return mode


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but those that a test makes."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TIDEMILL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def url(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    yield from fresh_url(engine_mode, tmp_path, request)


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, which the environment names."""
    found = Store(url)
    monkeypatch.setenv("TIDEMILL_URL", found.url)
    found.do(lambda engine: engine.now())
    return found


class Ran:
    """A command that has ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What it printed, as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        """The one object that it printed."""
        [found] = self.objects
        return found

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


Run = Callable[..., Ran]


@pytest.fixture
def run() -> Run:
    """Runs a command in this process."""

    def invoke(*args: str, given: str | None = None) -> Ran:
        done = click.testing.CliRunner().invoke(main, args, input=given, prog_name="tidemill")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return invoke


@pytest.fixture
def execute() -> Run:
    """Runs a command as a process of its own, without a terminal."""

    def invoke(*args: str, given: str | None = None) -> Ran:
        command = (sys.executable, "-m", "tidemill", *args)
        done = subprocess.run(
            command, input=given or "", capture_output=True, text=True, timeout=110, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return invoke
