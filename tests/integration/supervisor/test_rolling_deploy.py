"""A rolling deploy: processes of two releases work side by side, and only one knows the newest task."""

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job, enqueue, finished, states
from tidemill.engine.protocol import Engine

ROLLED = "tests.integration.supervisor.rolled:app"


@pytest.mark.every_engine
async def test_jobs_of_a_task_that_a_deploy_adds_are_not_delayed(engine: Engine, group: StartGroup) -> None:
    """As it was, jobs that the older processes took waited for ten seconds and more, again and again."""
    older = await group("older", slots=4, processes=2).ready(2)
    await group("newer", app=ROLLED, slots=4).ready()
    ids = []
    for _ in range(5):
        ids += await enqueue(engine, *[a_job("added", number) for number in range(20)])
    jobs = await finished(engine, ids)
    assert states(jobs) == {"completed": 100}
    assert {(job.attempts, job.due_at, job.failure_count) for job in jobs} == {(1, None, 0)}, (
        "none was delayed"
    )
    assert {job.member.rpartition(":")[2] for job in jobs}.isdisjoint({str(older.pid)})
