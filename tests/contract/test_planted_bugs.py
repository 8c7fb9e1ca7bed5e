"""The contract suite finds each planted bug: a suite that never fails proves nothing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract import plants, postgres_plants, redis_plants
from tests.servers.postgres_places import PostgresPlaces
from tests.servers.redis_places import RedisPlaces

HERE = Path(__file__).parent


def fails_under(plugin: str, mode: str, name: str, modules: Sequence[str]) -> None:
    """Run contract modules with a bug planted; the first failure is enough."""
    files = [str(path) for module in modules if (path := HERE / f"test_{module}.py").exists()]
    assert len(files) == len(modules), f"not every contract module of {modules} exists"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", f"tests.contract.{plugin}",
         "-p", "no:cacheprovider", "-k", mode, *files],
        cwd=HERE.parent.parent,
        env={**os.environ, "PENSTOCK_PLANT": name},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout[-3_000:] + run.stderr[-1_000:]
    assert "1 failed" in run.stdout, run.stdout[-3_000:]


@pytest.mark.parametrize("name", plants.PLANTS)
def test_the_suite_finds(name: str) -> None:
    modules = plants.PLANTS[name].modules
    mode = (
        "sqlite-file" if "transactions_complete" in modules else "sqlite-memory"
    )  # nobody else can connect there
    fails_under("plants", mode, name, modules)


@pytest.mark.parametrize("name", postgres_plants.PLANTS)
def test_the_suite_finds_in_postgres(name: str, postgres_places: PostgresPlaces) -> None:
    fails_under("postgres_plants", "postgres-server", name, postgres_plants.PLANTS[name].modules)


@pytest.mark.parametrize("name", redis_plants.PLANTS)
def test_the_suite_finds_in_redis(name: str, redis_places: RedisPlaces) -> None:
    fails_under("redis_plants", "redis-server", name, redis_plants.PLANTS[name].modules)
