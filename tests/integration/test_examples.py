"""The examples run, on every engine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.engines import SHARED, fresh_url
from tests.programs import running
from tidemill.model.jobs.retry import Retry
from tidemill.model.queues.queue import QueueOptions, Rate

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


@pytest.mark.row("E1", "F4")
def test_the_queues(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        (sys.executable, "queues.py"),
        cwd=EXAMPLES,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    *lines, shares = ran.stdout.splitlines()
    assert lines == ["sent to ada@example.com", "page 1", "called https://example.com", "scaled cat.png"]
    gold, silver, free = (int(each.split()[1]) for each in shares.partition(": ")[2].split(", "))
    assert gold > silver > free > 0
    assert free <= 30


@pytest.mark.row("E1")
def test_the_four_queues_have_the_options_that_they_say(environment: dict[str, str]) -> None:
    program = (
        "from queues import app; import msgspec; "
        "names = 'email pdf webhooks images'.split(); "
        "print(msgspec.json.encode({name: app.registry.options_of(name) for name in names}).decode())"
    )
    ran = subprocess.run(
        (sys.executable, "-c", program),
        cwd=EXAMPLES,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    options = msgspec.json.decode(ran.stdout, type=dict[str, QueueOptions])
    assert {
        name: (each.concurrency, each.rate, each.timeout, each.retry) for name, each in options.items()
    } == {
        "email": (5, Rate(100, per=60), 30, Retry(attempts=3, base=5)),
        "pdf": (3, None, 120, Retry(attempts=2, base=10, backoff="fixed")),
        "webhooks": (10, Rate(50, per=10), 15, Retry(attempts=5, base=1)),
        "images": (4, None, 60, Retry(attempts=2, base=5, backoff="fixed")),
    }


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
