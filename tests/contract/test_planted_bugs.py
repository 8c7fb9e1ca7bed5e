"""The contract suite finds each planted bug: a suite that never fails proves nothing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract import plants, postgres_plants, redis_plants
from tests.contract.planting import Plants
from tests.servers.postgres_urls import PostgresUrls
from tests.servers.redis_urls import RedisUrls

HERE = Path(__file__).parent
PLACES = (HERE, HERE.parent / "integration" / "postgres")
"""Where a module may be: what is not the same on every engine is found by the engine's own tests."""


def fails_under(plugin: str, mode: str, name: str, checks: Sequence[str]) -> None:
    """Run these checks with the bug planted; the first failure is enough."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", f"tests.contract.{plugin}",
         "-p", "no:cacheprovider", "-k", mode, *map(node, checks)],
        cwd=HERE.parent.parent,
        env={**os.environ, "TIDEMILL_PLANT": name, "TIDEMILL_STATEFUL": "quick"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout[-3_000:] + run.stderr[-1_000:]
    assert "1 failed" in run.stdout, run.stdout[-3_000:]


def node(check: str) -> str:
    """What pytest calls a check."""
    module, _, test = check.partition("::")
    (file,) = [path for place in PLACES if (path := place / f"test_{module}.py").exists()]
    return f"{file}" + (f"::{test}" if test else "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", plants.PLANTS)
def test_the_suite_finds(name: str) -> None:
    checks = plants.PLANTS[name].checks
    shared = any(check.startswith("transactions_complete") for check in checks)
    fails_under("plants", "sqlite-file" if shared else "sqlite-memory", name, checks)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", postgres_plants.PLANTS)
def test_the_suite_finds_in_postgres(name: str, postgres_urls: PostgresUrls) -> None:
    fails_under("postgres_plants", "postgres-server", name, postgres_plants.PLANTS[name].checks)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", redis_plants.PLANTS)
def test_the_suite_finds_in_redis(name: str, redis_urls: RedisUrls) -> None:
    fails_under("redis_plants", "redis-server", name, redis_plants.PLANTS[name].checks)


@pytest.mark.parametrize("known", [plants.PLANTS, postgres_plants.PLANTS, redis_plants.PLANTS])
def test_each_can_be_planted(known: Plants) -> None:
    """The code that it changes is still there: a run takes a sample of the bugs, and this is about all."""
    for planted in known.values():
        with pytest.MonkeyPatch.context() as patch:
            planted.patch(patch)
