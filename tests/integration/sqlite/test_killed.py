"""kill -9 between any two statements of any operation, within statements and within the commit: all of it
was done or nothing, and the repeat answers as the contract says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sqlite.killed_operations import OPERATIONS, READING
from tidemill.testing.contract.faults.cut import SCENARIOS, method_of

ROOT = Path(__file__).parents[3]


def test_no_method_that_writes_is_left_out() -> None:
    killed = {method_of(name) for name in OPERATIONS}
    assert killed.isdisjoint(READING)
    assert killed | set(READING) == {method_of(name) for name in SCENARIOS}


@pytest.mark.sampled(6)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_killed_operation_was_done_or_not_and_is_repeated(name: str, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.integration.sqlite.kill", str(tmp_path), name)
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)
    assert run.returncode == 0, run.stderr
    operation, kills = run.stdout.split()
    assert operation == name
    assert int(kills) > 15
