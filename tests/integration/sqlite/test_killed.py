"""kill -9 between any two statements of any operation, within statements and within the commit: all of it
was done or nothing, and the repeat answers as the contract says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sqlite.killed_operations import GROUPS, OPERATIONS, READING
from tidemill.testing.contract.faults.cut import SCENARIOS, method_of

ROOT = Path(__file__).parents[3]


def test_no_method_that_writes_is_left_out() -> None:
    killed = {method_of(name) for name in OPERATIONS}
    assert killed.isdisjoint(READING)
    assert killed | set(READING) == {method_of(name) for name in SCENARIOS}


@pytest.mark.sampled(3)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", GROUPS)
def test_a_killed_operation_was_done_or_not_and_is_repeated(group: str, tmp_path: Path) -> None:
    names = GROUPS[group]
    command = (sys.executable, "-m", "tests.integration.sqlite.kill", str(tmp_path), *names)
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stderr
    kills = dict(line.split() for line in run.stdout.splitlines())
    assert list(kills) == names
    assert all(int(count) > 15 for count in kills.values()), kills
