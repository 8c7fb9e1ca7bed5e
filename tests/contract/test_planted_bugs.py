"""The contract suite finds each planted bug: a suite that never fails proves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.plants import PLANTS

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", PLANTS)
def test_the_suite_finds(name: str) -> None:
    modules, _ = PLANTS[name]
    files = [str(path) for module in modules.split() if (path := HERE / f"test_{module}.py").exists()]
    assert files, f"no contract module of {modules} exists"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.contract.plants", "-p", "no:cacheprovider",
         "-k", "sqlite-memory", *files],
        cwd=HERE.parent.parent,
        env={**os.environ, "PENSTOCK_PLANT": name},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout[-3_000:] + run.stderr[-1_000:]
    assert "1 failed" in run.stdout, run.stdout[-3_000:]
