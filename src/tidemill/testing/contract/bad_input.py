"""Every refusal is `BadInput`, at the edge, and changes nothing."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import BadInput, EngineClosed, PayloadTooLarge
from tidemill.model.ids import JobId, new_id
from tidemill.model.job import PAYLOAD_LIMIT, JobState
from tidemill.model.queue import QueueOptions
from tidemill.model.run import Completed, Note, Progress, Release, Settlement, Then
from tidemill.model.time import FAR_FUTURE, MINUTE, SECOND
from tidemill.model.view import PAGE_LIMIT, JobFilter, TaskEntry
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_job,
    completed,
    snapshot,
    some_jobs,
)

ONE_ID = new_id()

BAD_JOBS: dict[str, dict[str, Any]] = {
    "id too short": {"id": b"x" * 15},
    "id as text": {"id": "0190a0a0-0000-7000-8000-000000000000"},
    "priority above": {"priority": 11},
    "priority below": {"priority": -1},
    "priority as truth": {"priority": True},
    "priority as fraction": {"priority": 1.5},
    "body too large": {"body": b"x" * (PAYLOAD_LIMIT + 1)},
    "at and delay": {"at": 1, "delay": 1},
    "delay before now": {"delay": -1},
    "delay beyond time": {"delay": FAR_FUTURE + 1},
    "at before time": {"at": -1},
    "at beyond time": {"at": FAR_FUTURE + 1},
    "no task": {"task": ""},
    "task with a space": {"task": "a b"},
    "no queue": {"queue": ""},
    "queue with a space": {"queue": "a b"},
    "queue with a slash": {"queue": "a/b"},
    "queue too long": {"queue": "q" * 101},
    "key as number": {"key": 7},
    "key too long": {"key": "k" * 201},
    "key with a control character": {"key": "a\x1fb"},
    "timeout of nothing": {"timeout": 0},
    "expired at once": {"expires": 0},
    "no attempts": {"attempts": 0},
    "its own parent": {"id": ONE_ID, "after": (ONE_ID,)},
    "parent id too short": {"after": (b"x",)},
    "too many parents": {"after": tuple(new_id() for _ in range(1_001))},
    "unknown parent": {"after": (new_id(),)},
}


@pytest.mark.parametrize("what", BAD_JOBS)
async def test_a_bad_job_is_not_stored(engine: Engine, clock: Clock, what: str) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    before = await snapshot(engine, clock)
    for jobs in ([a_job(**BAD_JOBS[what])], [a_job(queue="new"), a_job(**BAD_JOBS[what])]):
        with pytest.raises(BadInput):
            await engine.jobs.enqueue(jobs, now=clock.now)
    assert await snapshot(engine, clock) == before


@pytest.mark.parametrize("what", BAD_JOBS)
async def test_a_bad_job_in_then_stops_the_whole_settle(
    engine: Engine, clock: Clock, claimant: Claimant, what: str
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    first, second = await claimant.take()
    before = await snapshot(engine, clock)
    bad = Then(jobs=(a_job(**BAD_JOBS[what]),))
    with pytest.raises(BadInput):
        await claimant.settle(completed(first), completed(second, then=bad))
    assert await snapshot(engine, clock) == before


async def test_a_result_that_is_too_large(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    before = await snapshot(engine, clock)
    with pytest.raises(PayloadTooLarge):
        await claimant.complete(run, result=b"x" * (PAYLOAD_LIMIT + 1))
    assert await snapshot(engine, clock) == before


# Too many items

Call = Callable[[Engine, Claimant, Sequence[JobId]], Awaitable[object]]

BATCHES: dict[str, Call] = {
    "enqueue": lambda engine, _, ids: engine.jobs.enqueue([a_job(id=job_id) for job_id in ids]),
    "claim": lambda engine, claimant, ids: engine.jobs.claim(claimant.request(ids=tuple(ids))),
    "settle": lambda engine, _, ids: engine.jobs.settle(
        [Settlement(id=job_id, fence=1, outcome=Completed()) for job_id in ids]
    ),
    "write": lambda engine, _, ids: engine.jobs.write(
        [Note(id=job_id, fence=1, entry=Progress(value=b"1")) for job_id in ids]
    ),
    "release": lambda engine, _, ids: engine.jobs.release([Release(id=job_id, fence=1) for job_id in ids]),
    "cancel": lambda engine, _, ids: engine.jobs.cancel(ids),
    "replay": lambda engine, _, ids: engine.jobs.replay(ids, token=new_id()),
    "drop": lambda engine, _, ids: engine.jobs.drop(ids),
    "watch": lambda engine, _, ids: engine.jobs.watch(ids, waiter="w", ttl=SECOND),
    "get": lambda engine, _, ids: engine.inspect.get(ids),
    "publish": lambda engine, _, ids: engine.tasks.publish(
        [TaskEntry(name=job_id.hex(), queue="q") for job_id in ids]
    ),
}


@pytest.mark.parametrize("method", BATCHES)
async def test_a_batch_over_the_limit_is_refused(
    engine: Engine, clock: Clock, claimant: Claimant, method: str
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput):
        await BATCHES[method](engine, claimant, [new_id() for _ in range(BATCH_LIMIT + 1)])
    assert await snapshot(engine, clock) == before


# Single arguments

BAD_CALLS: dict[str, Callable[[Engine], Awaitable[object]]] = {
    "a page of none": lambda engine: engine.inspect.list(JobFilter(), limit=0),
    "a page too long": lambda engine: engine.inspect.list(JobFilter(), limit=PAGE_LIMIT + 1),
    "a cursor of one's own": lambda engine: engine.inspect.list(JobFilter(), cursor="let me in"),
    "a cursor that is empty": lambda engine: engine.inspect.list(JobFilter(), cursor=""),
    "a filter by a bad queue": lambda engine: engine.inspect.list(JobFilter(queue="a b")),
    "a filter by a bad task": lambda engine: engine.inspect.list(JobFilter(task="a b")),
    "a series of seconds": lambda engine: engine.inspect.series(since=0, until=MINUTE, step=SECOND),
    "a series of a minute and a half": lambda engine: engine.inspect.series(
        since=0, until=MINUTE, step=90 * SECOND
    ),
    "a queue with a bad name": lambda engine: engine.queues.configure("a b", QueueOptions()),
    "a pause of an unknown queue": lambda engine: engine.queues.pause("nothing", by="ann"),
    "a resume of an unknown queue": lambda engine: engine.queues.resume("nothing", by="ann"),
    "a short token": lambda engine: engine.jobs.replay([ONE_ID], token=b"short"),
    "a task of no priority": lambda engine: engine.tasks.publish(
        [TaskEntry(name="t", queue="q", priority=99)]
    ),
    "a task with a timeout before now": lambda engine: engine.tasks.publish(
        [TaskEntry(name="t", queue="q", timeout=-1)]
    ),
}


@pytest.mark.parametrize("what", BAD_CALLS)
async def test_a_bad_argument_is_refused(engine: Engine, clock: Clock, what: str) -> None:
    await engine.jobs.enqueue([a_job(id=ONE_ID)], now=clock.now)
    await engine.jobs.cancel([ONE_ID], now=clock.now)
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput):
        await BAD_CALLS[what](engine)
    assert await snapshot(engine, clock) == before


async def test_a_refusal_says_what_was_wrong(engine: Engine, clock: Clock) -> None:
    with pytest.raises(BadInput, match="11"):
        await engine.jobs.enqueue([a_job(priority=11)], now=clock.now)
    with pytest.raises(BadInput, match="nothing"):
        await engine.queues.pause("nothing", now=clock.now)


async def test_a_good_call_after_a_bad_one_works(engine: Engine, clock: Clock) -> None:
    with pytest.raises(BadInput):
        await engine.jobs.enqueue([a_job(after=(new_id(),))], now=clock.now)
    job = a_job()
    assert await engine.jobs.enqueue([job], now=clock.now) == [True]
    (record,) = await engine.inspect.get([job.id])
    assert record is not None
    assert record.state is JobState.READY


async def test_a_closed_engine_says_so(connect: Connect, clock: Clock) -> None:
    engine, other = await connect(), await connect()
    await engine.close()
    await engine.close()
    with pytest.raises(EngineClosed):
        await engine.jobs.enqueue([a_job()], now=clock.now)
    with pytest.raises(EngineClosed):
        await engine.inspect.list(JobFilter())
    assert await other.jobs.enqueue([a_job()], now=clock.now) == [True]
