"""The benchmark runs and reports. How fast is not asserted: that is for people to read.

A run takes a sample: the benchmark keeps no promise, and each measure costs interpreters and a server."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.postgres import NoServer, program

ROOT = Path(__file__).parents[2]
TINY = ("--quick", "--jobs", "100", "--rounds", "1", "--scale", "0.0005", "--durability", "off")
OF_ENGINES = ("enqueue", "claim", "pair", "lanes")
ON_REDIS = {"api": 4, "work": 4, "quiet": 0, "events": 2, "memory": 0, "finished": 2, "scheduled": 2}
"""How many ratios each measure of the product finds."""


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "bench", *options)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("measure", ["enqueue", "claim", "pair", "lanes", "finished", "scheduled"])
def test_each_measure_reports_its_ratios(measure: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    run = bench("--engine-only", *TINY, "--only", measure, "--json", str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())["comparisons"]
    assert {comparison["measure"] for comparison in found} == {measure}
    assert all(comparison["ratio"] > 0 for comparison in found)
    assert measure in run.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("measure", "ratios"), [("api", 2), ("work", 4), ("events", 2)])
def test_the_product_is_measured_beside_the_raw_loop(measure: str, ratios: int, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    run = bench(*TINY, "--only", measure, "--json", str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())["comparisons"]
    assert len(found) == ratios
    assert all(comparison["ratio"] > 0 for comparison in found)


def test_an_idle_worker_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    run = bench(*TINY, "--only", "quiet", "--json", str(file))
    assert run.returncode == 0, run.stderr
    figures = {figure["name"]: figure["value"] for figure in json.loads(file.read_text())["figures"]}
    assert figures["pick-up p99, from the call"] >= figures["pick-up p50, from the call"] > 0
    assert 5 < figures["memory, supervisor and 1 worker"] < 500


@pytest.fixture
def on_postgres() -> tuple[str, ...]:
    """The options, where a server is installed."""
    try:
        program("postgres")
    except NoServer as missing:
        if os.environ.get("TIDEMILL_REQUIRE_ALL") == "1":
            raise
        pytest.skip(str(missing))
    return ("--engine", "postgres", *TINY, "--held", "0")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("measures", "ratios", "figures"),
    [
        (("api",), 4, 0),
        (("work",), 3, 0),
        (("finished", "scheduled"), 4, 0),
        (("reader", "late"), 2, 3),
        (("writer",), 2, 2),
        (("quiet",), 0, 11),
        (("events",), 2, 1),
    ],
)
def test_the_product_is_measured_on_postgres(
    on_postgres: tuple[str, ...], measures: tuple[str, ...], ratios: int, figures: int, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    only = [part for measure in measures for part in ("--only", measure)]
    run = bench(*on_postgres, *only, "--json", str(file))
    assert run.returncode == 0, run.stderr
    report = json.loads(file.read_text())
    assert report["store"] == "postgres"
    assert (len(report["comparisons"]), len(report["figures"])) == (ratios, figures)
    assert all(found["ratio"] > 0 for found in report["comparisons"])
    assert all(figure["value"] is not None for figure in report["figures"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("measure", OF_ENGINES)
def test_the_engine_is_measured_on_postgres(
    on_postgres: tuple[str, ...], measure: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    run = bench("--engine-only", *on_postgres, "--only", measure, "--json", str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())["comparisons"]
    assert {comparison["measure"] for comparison in found} == {measure}
    servers = [min(comparison["cpu_us"]) for comparison in found]
    assert all(cost > 0 for cost in servers), "the server's processor time is in it"


@pytest.fixture
def on_redis() -> tuple[str, ...]:
    """The options, where a server is installed."""
    if shutil.which("redis-server") is None and shutil.which("valkey-server") is None:
        if os.environ.get("TIDEMILL_REQUIRE_ALL") == "1":
            raise NoServer("redis-server is not installed")
        pytest.skip("redis-server is not installed")
    return ("--engine", "redis", *TINY)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("only", [None, *ON_REDIS])
def test_the_product_is_measured_on_redis(
    on_redis: tuple[str, ...], only: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    run = bench(*on_redis, *(("--only", only) if only else ()), "--json", str(file))
    assert run.returncode == 0, run.stderr
    report = json.loads(file.read_text())
    assert report["store"] == "redis"
    measured = [only] if only else list(ON_REDIS)
    ratios = [name for name in measured for _ in range(ON_REDIS[name])]
    assert [found["measure"] for found in report["comparisons"]] == ratios
    assert all(found["ratio"] > 0 for found in report["comparisons"])
    figures = {figure["name"]: figure["value"] for figure in report["figures"]}
    if "quiet" in measured:
        assert figures["pick-up p99, from the call"] >= figures["pick-up p50, from the call"] > 0
    if "memory" in measured:
        assert figures["memory, a queued job"] > figures["memory, a finished job without its body"] > 50


@pytest.mark.sampled(1)
@pytest.mark.parametrize("measure", OF_ENGINES)
def test_the_engine_is_measured_on_redis(on_redis: tuple[str, ...], measure: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    run = bench("--engine-only", *on_redis, "--only", measure, "--json", str(file))
    assert run.returncode == 0, run.stderr
    found = json.loads(file.read_text())["comparisons"]
    assert {comparison["measure"] for comparison in found} == {measure}
    assert all(comparison["ratio"] > 0 for comparison in found)


def test_an_unknown_measure_is_refused() -> None:
    run = bench("--only", "nonsense")
    assert run.returncode == 2
    assert "there are api, work, peer, quiet" in run.stderr
