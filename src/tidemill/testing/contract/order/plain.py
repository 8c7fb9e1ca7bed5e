"""Short ways: whatever is said of a job or a queue, an engine does what it would do on the general way.

Every field of a job and every option of a queue has an example here, alone and among plain jobs. A new one
has to get one, so that no short way forgets it.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobRecord, JobState, NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.plain import is_plain, is_plain_job, is_plain_queue
from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    a_job,
    completed,
    configure,
    ids_of,
)

PARENT = a_job(queue="parents")
JOBS: dict[str, Any] = {
    "id": new_id(),
    "task": "other.task",
    "queue": "r",
    "priority": 2,
    "body": b"[[" + b"1," * 2_000 + b"2],{}]",
    "codec": 7,
    "headers": b'{"tags":["x"]}',
    "key": "acme",
    "delay": SECOND,
    "at": START + SECOND,
    "expires": SECOND,
    "timeout": 5 * SECOND,
    "retry": Retry(attempts=2, base=0.5),
    "attempts": 9,
    "after": (PARENT.id,),
    "parent_died": "run",
    "on_dead": "shop.handle",
    "schedule": "nightly",
    "unique": UniqueKey(key="x", until="start"),
}
PLAIN_FIELDS = {
    "id", "task", "queue", "priority", "body", "codec", "headers", "key", "timeout", "retry", "attempts",
    "parent_died", "on_dead", "schedule",
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "concurrency": {"concurrency": 9},
    "rate": {"rate": Rate(9)},
    "per_key": {"per_key": Limit(concurrency=9)},
    "limits": {"limits": {"acme": Limit(concurrency=9)}},
    "per_task": {"per_task": {"t": Limit(concurrency=9)}},
    "per_worker": {"per_worker": Limit(concurrency=9)},
    "fair_by": {"fair_by": "key"},
    "weights": {"weights": {"acme": 2}, "fair_by": "key"},
    "timeout": {"timeout": 5.0},
    "retry": {"retry": Retry(attempts=2)},
    "keep_completed": {"keep_completed": Keep(count=5)},
    "keep_dead": {"keep_dead": Keep(count=5)},
    "keep_cancelled": {"keep_cancelled": Keep(count=5)},
    "keep_body": {"keep_body": False},
}
PLAIN_OPTIONS = {
    "per_worker", "timeout", "retry", "keep_completed", "keep_dead", "keep_cancelled", "keep_body",
}  # fmt: skip
CARRIED = (
    "id", "task", "queue", "priority", "body", "codec", "headers", "timeout", "retry", "on_dead", "schedule",
)  # fmt: skip
PLACES = ("o", "ooo", "opp", "pop", "ppo")
"""Where it stands among plain jobs of one call."""


def test_every_field_and_every_option_has_an_example() -> None:
    assert set(JOBS) == set(NewJob.__struct_fields__)
    assert set(OPTIONS) == set(QueueOptions.__struct_fields__)
    for name, value in JOBS.items():
        assert is_plain_job(a_job(**{name: value})) is (name in PLAIN_FIELDS), name
    for name, said in OPTIONS.items():
        assert is_plain_queue(QueueOptions(**said)) is (name in PLAIN_OPTIONS), name


def shown(job: JobRecord | ClaimedJob, new: NewJob) -> dict[str, object]:
    """What differs from what was enqueued."""
    pairs = {name: (getattr(job, name), getattr(new, name)) for name in CARRIED}
    pairs["key"] = (job.key or None, new.key)
    pairs["attempts"] = (job.max_attempts, new.attempts)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


async def get_jobs(engine: Engine, jobs: Sequence[NewJob]) -> list[JobRecord]:
    found = await engine.inspect.get(ids_of(jobs))
    return [job for job in found if job is not None]


def state_at_first(job: NewJob) -> JobState:
    if job.after:
        return JobState.BLOCKED
    return JobState.SCHEDULED if job.delay or job.at is not None else JobState.READY


@pytest.mark.parametrize("field", JOBS)
async def test_a_job_with_one_more_thing_said_of_it(
    engine: Engine, clock: Clock, claimant: Claimant, field: str
) -> None:
    for place in PLACES:
        parent = a_job(queue="parents")
        said: Any = {"after": (parent.id,), "at": clock.now + SECOND}.get(field, JOBS[field])
        jobs = [a_job(**{field: said}) if each == "o" else a_job() for each in place]
        if field == "id":
            jobs = [a_job(id=new_id()) for _ in jobs]
        if field == "unique":  # each has a key of its own, or it would meet the one before
            jobs = [
                job if job.unique is None else replace(job, unique=UniqueKey(key=str(n), until="start"))
                for n, job in enumerate(jobs)
            ]
        await engine.jobs.enqueue([parent], now=clock.now)
        await engine.jobs.enqueue(jobs, now=clock.now)
        await check_way(engine, clock, claimant, jobs)


async def check_way(engine: Engine, clock: Clock, claimant: Claimant, jobs: Sequence[NewJob]) -> None:
    """From the enqueue to the end, everything is as it was said."""
    records = await get_jobs(engine, jobs)
    assert [shown(record, new) for record, new in zip(records, jobs, strict=True)] == [{}] * len(jobs)
    assert [record.state for record in records] == list(map(state_at_first, jobs))
    ready = [job for job in jobs if state_at_first(job) is JobState.READY]
    ready.sort(key=lambda job: (job.queue, job.priority))
    taken = sorted(await claimant.take("q", "r"), key=lambda job: job.queue)
    assert ids_of(taken) == ids_of(ready)
    assert [shown(run, new) for run, new in zip(taken, ready, strict=True)] == [{}] * len(ready)
    settled = await claimant.settle(*map(completed, taken))
    assert {answer.value for answer in settled.answers} <= {"applied"}
    ended = await get_jobs(engine, ready)
    assert {record.state for record in ended} <= {JobState.COMPLETED}
    assert [shown(record, new) for record, new in zip(ended, ready, strict=True)] == [{}] * len(ready)
    clock.forward(2)
    await claimant.complete(*await claimant.take("parents"))
    waited = await claimant.take("q", "r")
    assert ids_of(waited) == [job.id for job in jobs if job not in ready]
    await claimant.complete(*waited)


async def test_a_job_that_expires_among_plain_ones(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for place in PLACES:
        jobs = [a_job(expires=SECOND) if each == "o" else a_job() for each in place]
        await engine.jobs.enqueue(jobs, now=clock.now)
        clock.forward(2)
        taken = await claimant.take()
        assert ids_of(taken) == [job.id for job in jobs if job.expires is None]
        await claimant.complete(*taken)
        dead = {record.id for record in await get_jobs(engine, jobs) if record.state is JobState.DEAD}
        assert dead == {job.id for job in jobs if job.expires is not None}


@pytest.mark.parametrize("option", OPTIONS)
async def test_plain_jobs_in_a_queue_with_one_option(
    engine: Engine, clock: Clock, claimant: Claimant, option: str
) -> None:
    options = QueueOptions(**OPTIONS[option])
    await configure(engine, "q", options, now=clock.now)
    jobs = [a_job(key="acme", body=b"[[%d],{}]" % n) for n in range(5)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    taken = await claimant.take()
    assert ids_of(taken) == ids_of(jobs)
    for run, new in zip(taken, jobs, strict=True):
        assert shown(run, new) == {}
        assert run.limited is not is_plain(new, options)
    await claimant.complete(*taken)
    kept = [record.body is not None for record in await get_jobs(engine, jobs)]
    assert kept == [option != "keep_body"] * 5
