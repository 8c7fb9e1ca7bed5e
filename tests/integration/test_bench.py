"""The benchmark runs and reports. How fast is not asserted: that is for people to read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ("--quick", "--jobs", "100", "--rounds", "1", "--scale", "0.0005", "--durability", "off")


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "bench", *options)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("measure", ["enqueue", "claim", "pair", "lanes", "finished", "scheduled"])
def test_each_measure_reports_its_ratios(measure: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    run = bench("--engine-only", *TINY, "--only", measure, "--json", str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())["comparisons"]
    assert {comparison["measure"] for comparison in found} == {measure}
    assert all(comparison["ratio"] > 0 for comparison in found)
    assert measure in run.stdout


def test_the_whole_product_is_announced_for_later() -> None:
    run = bench()
    assert run.returncode == 2
    assert "--engine-only" in run.stderr
