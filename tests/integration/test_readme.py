"""The README's first example works as pasted."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import running

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the example in it, and nothing else."""
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    (tmp_path / "shop.py").write_text(example[1])
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}


@pytest.fixture
def worker(shop: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tidemill", "worker", "shop:app"]
    with running(command, cwd=shop, env=environment) as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_the_first_example_works_as_pasted(
    shop: Path, worker: subprocess.Popen[bytes], environment: dict[str, str]
) -> None:
    for command in (["shop.py"], ["-m", "shop"]):  # the task's name is the same, however it is started
        ran = subprocess.run(
            [sys.executable, *command],
            cwd=shop,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "sent 'hello' to ada@example.com\n", "")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=60) == 0
