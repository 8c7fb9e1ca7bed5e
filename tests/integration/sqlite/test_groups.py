"""Calls that share a commit: one that does not fit fails alone."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import file_url
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import JobState, NewJob, Stored
from tidemill.model.member import MemberInfo
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import a_job, configure


def misfit(job: NewJob) -> NewJob:
    """A job with a value that no column takes, past every check at the edge."""
    return msgspec.structs.replace(job, codec="one")


async def test_a_value_that_does_not_fit_fails_its_own_call_only(path: Path) -> None:
    engine = await connect(file_url(path))
    good = [a_job() for _ in range(20)]
    calls = [engine.jobs.enqueue([job]) for job in good]
    calls.insert(10, engine.jobs.enqueue([misfit(a_job())]))
    info = MemberInfo(id=bytes(16), name="m")
    *answers, heartbeat, configured = await asyncio.gather(
        *calls,
        engine.members.heartbeat(info),
        configure(engine, "r", QueueOptions()),
        return_exceptions=True,
    )
    assert isinstance(answers.pop(10), BadInput)
    assert answers == [[Stored(job.id, True)] for job in good]
    assert not isinstance(heartbeat, BaseException)
    assert configured is None
    page = await engine.inspect.list(JobFilter(state=JobState.READY))
    assert {job.id for job in page.jobs} == {job.id for job in good}


async def test_a_body_of_the_wrong_type_is_refused_at_the_edge(path: Path) -> None:
    engine = await connect(file_url(path))
    with pytest.raises(BadInput, match="bytes"):
        await engine.jobs.enqueue([msgspec.structs.replace(a_job(), body="text")])
