"""`jobs.enqueue`: what is stored, in which state, and that a repeat is harmless."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import BadInput, UnknownParent
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import PAYLOAD_LIMIT, JobRecord, JobState, NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Checkpoint, LogLine
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import FAR_FUTURE, SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_job,
    configure,
    created,
    ids_of,
    job_of,
    snapshot,
    some_jobs,
    states_of,
)


@pytest.mark.row("C1")
async def test_everything_about_a_job_is_kept(engine: Engine, clock: Clock) -> None:
    new = a_job(
        task="shop.mail:send",
        queue="mail",
        priority=3,
        body=b'[["a@b.c"],{"n":"\\u00e9\\u0000"}]',
        codec=2,
        headers=b'{"tags":["x"],"trace":"00-1"}',
        key="K\u00fcnde 1",
        delay=90 * SECOND,
        expires=900 * SECOND,
        timeout=30 * SECOND,
        retry=Retry(attempts=3, base=2.5, on=("builtins.OSError",)),
        attempts=3,
        on_dead="shop.mail:dead",
        schedule="nightly",
    )
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [True]
    job = await job_of(engine, new.id)
    for field in ("id", "task", "queue", "priority", "body", "codec", "headers", "key", "timeout", "retry"):
        assert getattr(job, field) == getattr(new, field), field
    assert (job.max_attempts, job.on_dead, job.schedule) == (3, "shop.mail:dead", "nightly")
    assert (job.created_at, job.due_at) == (clock.now, clock.now + 90 * SECOND)
    assert job.expires_at == clock.now + 900 * SECOND
    assert (job.state, job.attempts, job.crashes, job.lost_runs) == (JobState.SCHEDULED, 0, 0, 0)
    assert (job.replays, job.failure_count, job.waits_for) == (0, 0, 0)
    assert (job.suspect, job.cancel_requested) == (False, False)
    assert (job.ready_at, job.claimed_at, job.started_at, job.ended_at) == (None, None, None, None)
    assert (job.settled_fence, job.result, job.error, job.progress) == (None, None, None, None)


async def test_a_plain_job_is_ready_now(engine: Engine, clock: Clock) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    job = await job_of(engine, new.id)
    assert (job.state, job.created_at, job.ready_at) == (JobState.READY, clock.now, clock.now)
    assert (job.key, job.headers, job.timeout, job.retry, job.expires_at) == (None, None, None, None, None)
    assert job.body == new.body


@pytest.mark.row("A2")
@pytest.mark.parametrize(
    ("ahead", "state"),
    [(1, JobState.SCHEDULED), (0, JobState.READY), (-1, JobState.READY), (-3_600 * SECOND, JobState.READY)],
)
async def test_only_a_due_time_after_now_is_waited_for(
    engine: Engine, clock: Clock, ahead: int, state: JobState
) -> None:
    job = a_job(at=clock.now + ahead)
    await engine.jobs.enqueue([job], now=clock.now)
    assert await states_of(engine, [job]) == [state]


@pytest.mark.row("A2")
async def test_the_far_future_is_kept_exactly(engine: Engine, clock: Clock) -> None:
    job = a_job(at=FAR_FUTURE)
    await engine.jobs.enqueue([job], now=clock.now)
    assert (await job_of(engine, job.id)).due_at == FAR_FUTURE


@pytest.mark.row("C1")
async def test_an_existing_id_is_left_as_it_is(engine: Engine, clock: Clock) -> None:
    first = a_job(body=b"[[1],{}]")
    await engine.jobs.enqueue([first], now=clock.now)
    before = await snapshot(engine, clock)
    other = msgspec.structs.replace(first, task="u", queue="r", priority=0, body=b"[[2],{}]", delay=SECOND)
    clock.forward(1)
    assert created(await engine.jobs.enqueue([other], now=clock.now)) == [False]
    assert (await snapshot(engine, clock))["jobs"] == before["jobs"]


async def test_an_id_twice_in_one_call_is_two_calls(engine: Engine, clock: Clock) -> None:
    first = a_job(body=b"[[1],{}]")
    second = msgspec.structs.replace(first, body=b"[[2],{}]")
    other = a_job()
    assert created(await engine.jobs.enqueue([first, other, second], now=clock.now)) == [True, True, False]
    assert (await job_of(engine, first.id)).body == b"[[1],{}]"


@pytest.mark.row("C1")
async def test_of_two_calls_at_once_with_one_id_the_loser_finds_the_winner(
    connect: Connect, clock: Clock
) -> None:
    """So it can tell whether that is the same call or another one."""
    one, other = await connect(), await connect()
    for _ in range(5):
        first = a_job(body=b"[[1],{}]")
        second = msgspec.structs.replace(first, task="u", body=b"[[2],{}]")

        async def put(engine: Engine, job: NewJob) -> tuple[bool, JobRecord | None]:
            (stored,) = await engine.jobs.enqueue([job], now=clock.now)
            (found,) = await engine.jobs.watch([job.id], waiter="", ttl=0, now=clock.now)
            assert stored.id == job.id
            return stored.created, found

        answers = await asyncio.gather(put(one, first), put(other, second))
        assert sorted(new for new, _ in answers) == [False, True]
        stored = first if answers[0][0] else second
        for _, found in answers:
            assert found is not None
            assert (found.task, found.body) == (stored.task, stored.body)


@pytest.mark.row("C1")
@pytest.mark.parametrize("other", [{"queue": "other"}, {"priority": 7}], ids=["queue", "priority"])
async def test_known_ids_among_new_ones_of_another_lane(
    engine: Engine, clock: Clock, claimant: Claimant, other: dict[str, Any]
) -> None:
    """As when a repeated call and a new one are merged: each id is judged for itself."""
    known = some_jobs(2)
    await engine.jobs.enqueue(known, now=clock.now)
    new = some_jobs(2, **other)
    assert created(await engine.jobs.enqueue([*known, *new], now=clock.now)) == [False, False, True, True]
    assert created(await engine.jobs.enqueue([*new, *known], now=clock.now)) == [False] * 4
    runs = await claimant.take("q", "other", most=10)
    assert sorted(ids_of(runs)) == sorted(ids_of([*known, *new]))


async def test_a_finished_job_still_owns_its_id(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    await claimant.complete(await claimant.take_one())
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [False]
    assert await states_of(engine, [new]) == [JobState.COMPLETED]


async def test_a_tombstone_still_owns_its_id(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    await claimant.complete(await claimant.take_one())
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [False]
    assert await claimant.take() == []


async def test_a_dropped_id_may_be_used_again(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    run = await claimant.take_one()
    await claimant.write(run, LogLine(number=1, level="info", message="x"), Checkpoint(name="a", value=b"1"))
    await claimant.fail(run)
    await engine.jobs.drop([new.id], now=clock.now)
    assert created(await engine.jobs.enqueue([new], now=clock.now)) == [True]
    job = await job_of(engine, new.id)
    assert (job.settled_fence, job.failures, job.error, job.failure_count) == (None, (), None, 0)
    assert await engine.inspect.log(new.id) == []
    assert await engine.inspect.checkpoints(new.id) == []
    assert (await claimant.take_one()).id == new.id


@pytest.mark.row("A1")
async def test_a_full_batch_keeps_its_order(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(BATCH_LIMIT)
    assert created(await engine.jobs.enqueue(jobs, now=clock.now)) == [True] * BATCH_LIMIT
    records = [job for job in await engine.inspect.get(ids_of(jobs)) if job]
    seqs = [job.seq for job in records]
    assert seqs == sorted(seqs)
    assert len(set(seqs)) == BATCH_LIMIT
    assert ids_of(await claimant.take(most=BATCH_LIMIT)) == ids_of(jobs)


@pytest.mark.row("A1")
async def test_the_time_in_an_id_decides_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    ids = sorted((new_id() for _ in range(5)), reverse=True)
    for job_id in ids:
        await engine.jobs.enqueue([a_job(id=job_id)], now=clock.now)
    assert ids_of(await claimant.take()) == ids


@pytest.mark.row("A1")
async def test_no_clock_decides_the_order(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    for job in jobs:
        await engine.jobs.enqueue([job], now=clock.now)
        clock.forward(-1)
    assert ids_of(await claimant.take()) == ids_of(jobs)


async def test_an_unknown_queue_comes_into_being(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job(queue="new")], now=clock.now)
    (queue,) = await engine.queues.list()
    assert (queue.name, queue.options, queue.created_at) == ("new", QueueOptions(), clock.now)
    assert queue.paused_at is None


async def test_an_empty_call_does_nothing(engine: Engine, clock: Clock) -> None:
    assert await engine.jobs.enqueue([], now=clock.now) == []


async def test_the_largest_body_comes_back_whole(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    body = bytes(range(256)) * (PAYLOAD_LIMIT // 256)
    await engine.jobs.enqueue([a_job(body=body)], now=clock.now)
    assert (await claimant.take_one()).body == body


async def test_what_one_client_stored_another_sees(connect: Connect, clock: Clock) -> None:
    one, other = await connect(), await connect()
    job = a_job()
    await one.jobs.enqueue([job], now=clock.now)
    assert await states_of(other, [job]) == [JobState.READY]


async def test_an_unknown_parent_refuses_the_whole_call(engine: Engine, clock: Clock) -> None:
    before = await snapshot(engine, clock)
    with pytest.raises(UnknownParent):
        await engine.jobs.enqueue([a_job(), a_job(after=(new_id(),))], now=clock.now)
    assert await snapshot(engine, clock) == before


async def test_a_parent_must_stand_before_its_child(engine: Engine, clock: Clock) -> None:
    parent = a_job()
    child = a_job(after=(parent.id,))
    with pytest.raises(UnknownParent):
        await engine.jobs.enqueue([child, parent], now=clock.now)
    assert created(await engine.jobs.enqueue([parent, child], now=clock.now)) == [True, True]
    assert await states_of(engine, [parent, child]) == [JobState.READY, JobState.BLOCKED]


async def test_a_bad_job_spoils_the_whole_call(engine: Engine, clock: Clock) -> None:
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput):
        await engine.jobs.enqueue([a_job(), a_job(priority=11), a_job()], now=clock.now)
    assert await snapshot(engine, clock) == before
