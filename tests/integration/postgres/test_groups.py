"""Large dead-letter groups are counted in the background."""

import pytest

from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.read import groups
from tidemill.model.view import DeadGroup
from tidemill.testing.contract.fixtures import Claimant, Clock, some_jobs


async def only_group(engine: PostgresEngine) -> DeadGroup:
    (group,) = (await engine.inspect.dead_groups()).groups
    return group


async def counted(engine: PostgresEngine) -> None:
    """A count that was begun has ended."""
    recount = engine.inspect._groups._recount
    assert recount._task is not None
    await recount._task
    recount._not_before = 0.0


async def test_a_large_group_is_counted_in_the_background(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MANY", 5)
    await engine.jobs.enqueue(some_jobs(9), now=clock.now)
    runs = await claimant.take()
    await claimant.fail(*runs)
    assert (await only_group(engine)).count == 6, "more than five"
    await counted(engine)
    assert (await only_group(engine)).count == 9
    await counted(engine)
    await engine.jobs.drop([run.id for run in runs[:3]], now=clock.now)
    assert (await only_group(engine)).count == 9, "as it was counted last"
    await counted(engine)
    assert (await only_group(engine)).count == 6
    await engine.jobs.drop([run.id for run in runs[3:5]], now=clock.now)
    assert (await only_group(engine)).count == 4, "few are counted at once"
