"""The checkers find planted bugs. One is looked for here; `./dev chaos --plants` looks for all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import plants
from tests.chaos.checkers import CHECKERS
from tests.chaos.faults import FAULTS, kinds_for
from tests.chaos.plants.trial import seek
from tests.chaos.stores import STORES

FEWEST = 10

PLANT_ALL = """
from tests.chaos import plants
for one in plants.load().values():
    one.patch()
"""


def test_there_are_enough_for_many_checkers() -> None:
    known = plants.load()
    assert len(known) >= FEWEST
    assert len({one.checker for one in known.values()}) >= FEWEST
    assert {one.engine for one in known.values()} == set(STORES)


@pytest.mark.parametrize("name", plants.load())
def test_each_is_for_a_checker_and_under_faults_that_exist(name: str) -> None:
    plant = plants.load()[name]
    assert plant.checker in CHECKERS
    playable = kinds_for(STORES[plant.engine].able, root=True)
    assert all(step.kind in FAULTS and step.kind in playable for step in plant.plan)


def test_each_still_has_a_place_to_be_planted() -> None:
    """In a process of its own, because they stay."""
    subprocess.run([sys.executable, "-c", PLANT_ALL], cwd=Path(__file__).parents[2], check=True)


@pytest.mark.row("F3")
@pytest.mark.timeout(180)
async def test_a_lost_job_is_found() -> None:
    verdict = await seek("the_last_of_many_is_not_stored")
    assert verdict.red == ["nothing_acknowledged_is_lost"]
