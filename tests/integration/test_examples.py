"""The examples run, on every engine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import SHARED, fresh_url
from tests.programs import running

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def environment(engine_mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    for url in fresh_url(engine_mode, tmp_path, request):
        others = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        yield {**others, "TIDEMILL_URL": url}


@pytest.fixture
def worker(environment: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    command = (sys.executable, "-m", "tidemill", "worker", "shop:app")
    with running(command, cwd=EXAMPLES, env=environment) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_the_shop(environment: dict[str, str], worker: "subprocess.Popen[bytes]") -> None:
    ran = subprocess.run(
        (sys.executable, "shop.py"),
        cwd=EXAMPLES,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["sent to ada@example.com", "sent to grace@example.com", "15.00"]
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=60) == 0
