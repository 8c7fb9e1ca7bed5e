"""Every call of a facet is told to the observer, with its size and its error."""

import pytest

from tidemill.engine.instrumentation import EngineCall, instrument
from tidemill.engine.registry import connect
from tidemill.model.errors import BadInput
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.testing.contract.fixtures import created


async def test_calls_are_reported() -> None:
    calls: list[EngineCall] = []
    engine = instrument(await connect("sqlite://"), calls.append)
    jobs = [NewJob(id=new_id(), task="t", queue="q") for _ in range(3)]
    assert created(await engine.jobs.enqueue(jobs)) == [True] * 3
    assert engine.blocking is not None
    assert created(engine.blocking.enqueue(jobs)) == [False] * 3
    assert [job is not None for job in await engine.inspect.get([jobs[0].id])] == [True]
    assert engine.name == "sqlite://"
    await engine.close()
    assert [(call.facet, call.method, call.items, call.error) for call in calls] == [
        ("jobs", "enqueue", 3, None),
        ("blocking", "enqueue", 3, None),
        ("inspect", "get", 1, None),
    ]
    assert all(call.seconds > 0 for call in calls)


async def test_errors_are_reported_and_raised() -> None:
    calls: list[EngineCall] = []
    engine = instrument(await connect("sqlite://"), calls.append)
    with pytest.raises(BadInput):
        await engine.jobs.enqueue([NewJob(id=new_id(), task="t", queue="q", priority=11)])
    await engine.close()
    assert [type(call.error) for call in calls] == [BadInput]
