"""A workload under a rain of deaths: whatever is killed, in whatever order, every job ends once."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import Group, a_job, enqueue, finished, noted, states
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import NewJob

DEATHS = 8


@pytest.mark.row("A4", "B6", "D3")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [1])
async def test_nothing_is_lost_in_a_rain_of_deaths(
    engine: Engine, group: StartGroup, tmp_path: Path, seed: int
) -> None:
    """Worker processes and whole members; a new member comes for each that goes."""
    dice = random.Random(seed)
    groups = [await group(f"first-{number}", slots=5, processes=2).ready(2) for number in range(2)]
    ids: list[JobId] = []
    for death in range(DEATHS):
        wanted = len(_runs(tmp_path)) + 10
        ids += await enqueue(engine, *_some_work(tmp_path))
        await until(lambda wanted=wanted: len(_runs(tmp_path)) >= wanted)  # type: ignore[misc]
        victim = dice.choice(groups)
        if dice.random() < 0.6:
            _kill_one(victim, dice)
        else:
            victim.kill()
            groups.remove(victim)
            groups.append(await group(f"later-{death}", slots=5, processes=2).ready(2))
    jobs = await finished(engine, ids, patience_s=200)
    assert states(jobs) == {"completed": len(ids)}
    assert {job.attempts for job in jobs} == {1}
    ran = Counter(_runs(tmp_path))
    assert len(ran) == len(ids)
    lost = sum(1 for job in jobs if job.failure_count)
    print(f"seed {seed}: {sum(ran.values()) - len(ids)} runs more than jobs, {lost} jobs lost a run")
    assert [await one.stop() for one in groups] == [0] * len(groups)


def _some_work(folder: Path) -> list[NewJob]:
    naps = [a_job("nap", str(folder), 0.1) for _ in range(50)]
    return [*naps, *[a_job("wait_in_process", str(folder), ".") for _ in range(5)]]


def _runs(folder: Path) -> list[str]:
    return noted(folder, "nap") + noted(folder, "waiting")


def _kill_one(one: Group, dice: random.Random) -> None:
    if workers := one.workers:
        os.kill(dice.choice(workers), signal.SIGKILL)
