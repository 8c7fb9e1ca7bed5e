"""kill -9 between any two statements of any operation, within statements and within the commit: all of it
was done or nothing, and the repeat answers as the contract says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sqlite.killed_operations import OPERATIONS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_killed_operation_was_done_or_not_and_is_repeated(name: str, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.integration.sqlite.kill", str(tmp_path), name)
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 10
