"""A short part of `./dev chaos`: a cluster on each engine, under a few faults, and nothing is wrong after."""

import os

import pytest

from tests.chaos.report import findings
from tests.chaos.runner import Verdict, run
from tests.chaos.seeds import SHORT_RATE, SHORT_S, SHORT_SEEDS
from tests.servers.postgres import NoServer

MODES = {"sqlite-file": "sqlite", "postgres-server": "postgres", "redis-server": "redis"}


async def verdict_of(engine: str) -> Verdict:
    try:
        return await run(engine, seed=SHORT_SEEDS[engine], seconds=SHORT_S, rate=SHORT_RATE)
    except NoServer as missing:
        if os.environ.get("TIDEMILL_REQUIRE_ALL") == "1":
            raise
        pytest.skip(str(missing))


@pytest.mark.row("F2", "F3")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("engine_mode", MODES)
async def test_a_cluster_survives(engine_mode: str) -> None:
    verdict = await verdict_of(MODES[engine_mode])
    assert not verdict.red, "\n".join(findings(verdict))
    assert verdict.faults
    assert verdict.runs > 20
