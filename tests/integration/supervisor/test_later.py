"""Snoozes outlive the process that made them, and reach jobs in processes of their own."""

import os
import signal
from pathlib import Path

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job, enqueue, finished, in_state, noted, states
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState


async def test_a_job_in_a_process_of_its_own_snoozes_and_retries(engine: Engine, group: StartGroup) -> None:
    await group().ready()
    snoozed, retried = await enqueue(
        engine, a_job("later_in_process", "snooze"), a_job("later_in_process", "retry")
    )
    (job,) = await finished(engine, [snoozed])
    assert (job.state, job.snoozes, job.attempts_begun) == (JobState.COMPLETED, 3, 1)
    (job,) = await in_state(engine, [retried], JobState.SCHEDULED)
    assert (job.snoozes, job.attempts) == (0, 1)
    assert job.error is not None
    assert job.error.error == "tidemill.task.later.RetryAfter"


@pytest.mark.every_engine
async def test_the_number_of_snoozes_outlives_a_killed_process(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=1).ready()
    ids = await enqueue(engine, a_job("snoozes_and_waits", str(tmp_path), "go"))
    await until(lambda: len(noted(tmp_path, "waiting")) == 3)
    os.kill(one.workers[0], signal.SIGKILL)
    await until(lambda: len(noted(tmp_path, "waiting")) == 4)
    (tmp_path / "go").touch()
    (job,) = await finished(engine, ids)
    assert states([job]) == {"completed": 1}
    assert job.snoozes == 2, "the fourth run knew of both"
    assert await one.stop() == 0
