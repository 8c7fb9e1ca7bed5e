"""Worker processes that cannot start, or fail as soon as they have: tried again, in good measure."""

import os
import resource
import signal
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import SUPERVISES, a_job, enqueue, finished, states
from tests.integration.supervisor.processes import descriptors_of, until
from tidemill.engine.protocol import Engine

DEPLOYED = "tests.integration.supervisor.deployed:app"
NONE_FREE = 3
"""A limit of descriptors that is below any that is free."""

pytestmark = pytest.mark.row("A4")


async def test_an_app_that_broke_after_it_was_loaded_once_is_waited_for(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """All of it between two heartbeats: somebody deploys."""
    broken = tmp_path / "broken"
    one = await group(
        app=DEPLOYED, heartbeat_s=60.0, lease_s=200.0, environment={"BROKEN": str(broken)}
    ).ready()
    broken.touch()
    os.kill(one.workers[0], signal.SIGKILL)
    await until(lambda: "cannot work" in one.log or not one.alive)
    broken.unlink()
    await one.ready(2)
    assert await one.stop() == 0


async def test_the_first_claim_does_not_wait_for_the_next_heartbeat(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """Nor does that of a successor: without a heartbeat of their own both would wait longer than this test
    may."""
    one = await group(heartbeat_s=200.0, lease_s=600.0).ready()
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    assert states(await finished(engine, ids)) == {"completed": 1}
    os.kill(one.workers[0], signal.SIGKILL)
    await one.ready(2)
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    assert states(await finished(engine, ids)) == {"completed": 1}
    assert await one.stop() == 0


SHORT_OF_PATIENCE = """
import tidemill.worker.member.respawn as it
it.SHORT_LIFE_S, it.FIRST_PAUSE_S, it.LONGEST_PAUSE_S = 0.01, 1_000.0, 1_000.0
"""


async def test_an_app_that_takes_long_to_fail_is_not_started_over_and_over(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """Every import takes longer than a short life."""
    broken = tmp_path / "broken"
    program = SHORT_OF_PATIENCE + SUPERVISES
    one = await group(app=DEPLOYED, program=program, environment={"BROKEN": str(broken)}).ready()
    broken.touch()
    os.kill(one.workers[0], signal.SIGKILL)
    await until(lambda: "the next worker process starts in 1000 s" in one.log)
    assert one.log.count("cannot work") <= 2
    assert await one.stop() == 0, "the pause does not hold it up"


async def test_a_supervisor_without_free_descriptors_lives_on(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group().ready()
    soft, hard = resource.prlimit(one.pid, resource.RLIMIT_NOFILE)
    before = descriptors_of(one.pid)
    resource.prlimit(one.pid, resource.RLIMIT_NOFILE, (NONE_FREE, hard))
    os.kill(one.workers[0], signal.SIGKILL)
    await until(lambda: "could not be started" in one.log or not one.alive)
    assert one.alive, one.log
    resource.prlimit(one.pid, resource.RLIMIT_NOFILE, (soft, hard))
    await one.ready(2)
    assert descriptors_of(one.pid) <= before
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    assert states(await finished(engine, ids)) == {"completed": 1}
    assert await one.stop() == 0
