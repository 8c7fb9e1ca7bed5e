"""A short run with a bug planted."""

import shutil

from tests.chaos import plants
from tests.chaos.runner import Verdict, run
from tests.chaos.times import Times

SECONDS = 6.0
TIMES = Times(drain_s=12.0)


async def seek(name: str, seed: int = 1) -> Verdict:
    """What the checkers say of it. What it leaves behind is removed: it is meant to fail."""
    plant = plants.load()[name]
    verdict = await run(
        plant.engine,
        seed=seed,
        seconds=SECONDS if plant.plan else SECONDS / 2,
        plan=plant.plan,
        plant=name,
        times=TIMES,
        rate=plant.rate,
    )
    if verdict.folder:
        shutil.rmtree(verdict.folder, ignore_errors=True)
    return verdict
