"""`jobs.settle`: every outcome, and who may record it."""

import msgspec
import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import PayloadTooLarge
from tidemill.model.ids import new_id
from tidemill.model.jobs.fingerprint import fingerprint_of
from tidemill.model.jobs.job import MESSAGE_LIMIT, PAYLOAD_LIMIT, TRACEBACK_LIMIT, Failure, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import (
    Answer,
    Checkpoint,
    Completed,
    Crashed,
    Failed,
    LogLine,
    Settlement,
    Started,
    Stopped,
)
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_failure,
    a_job,
    completed,
    configure,
    job_of,
    settlement,
    snapshot,
    some_jobs,
    states_of,
)

APPLIED, ALREADY, STALE = Answer.APPLIED, Answer.ALREADY, Answer.STALE


async def test_completed(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(body=b"[[1],{}]")], now=clock.now)
    claimed = await claimant.take_one()
    claimed_at = clock.now
    clock.forward(9)
    assert await claimant.complete(claimed, result=b'{"n":1}', ran=7 * SECOND) == [APPLIED]
    job = await job_of(engine, claimed.id)
    assert (job.state, job.attempts, job.result) == (JobState.COMPLETED, 1, b'{"n":1}')
    assert (job.claimed_at, job.started_at, job.ended_at) == (claimed_at, clock.now - 7 * SECOND, clock.now)
    assert (job.settled_fence, job.member, job.body) == (claimed.fence, "host:1", b"[[1],{}]")
    assert (job.error, job.failure_count) == (None, 0)


async def test_failed_for_good(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(body=b"[[1],{}]")], now=clock.now)
    claimed = await claimant.take_one()
    claimed_at = clock.now
    clock.forward(3)
    assert await claimant.fail(claimed, ran=2 * SECOND) == [APPLIED]
    job = await job_of(engine, claimed.id)
    assert (job.state, job.attempts, job.ended_at) == (JobState.DEAD, 1, clock.now)
    assert (job.body, job.result, job.settled_fence) == (b"[[1],{}]", None, claimed.fence)
    expected = Failure(
        kind="error",
        error="builtins.OSError",
        message="no route",
        traceback="Traceback: ...",
        fingerprint=fingerprint_of(a_failure()),
        attempt=1,
        number=1,
        member="host:1",
        claimed_at=claimed_at,
        started_at=clock.now - 2 * SECOND,
        ended_at=clock.now,
    )
    assert (job.failures, job.error, job.failure_count) == ((expected,), expected, 1)


@pytest.mark.row("A2")
async def test_failed_and_tried_again(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await claimant.take_one()
    clock.forward(1)
    assert await claimant.fail(first, retry_in=4 * SECOND) == [APPLIED]
    job = await job_of(engine, first.id)
    assert (job.state, job.attempts, job.due_at) == (JobState.SCHEDULED, 1, clock.now + 4 * SECOND)
    assert (job.ended_at, job.failures[0].retry_in) == (None, 4 * SECOND)
    clock.forward(3.999_999)
    assert await claimant.take() == []
    clock.forward(0.000_001)
    second = await claimant.take_one()
    assert (second.attempt, second.fence > first.fence, second.seq > first.seq) == (2, True, True)


async def test_a_retry_after_nothing_is_scheduled_too(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job = await claimant.take_one()
    await claimant.fail(job, retry_in=0)
    assert await states_of(engine, [job]) == [JobState.SCHEDULED]
    assert (await claimant.take_one()).attempt == 2


@pytest.mark.row("A6")
@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        (Retry(attempts=7, base=2, cap=30, jitter="none"), [2, 4, 8, 16, 30, 30]),
        (Retry(attempts=4, base=10, jitter="none"), [10, 20, 40]),
        (Retry(attempts=6, base=1, jitter="none"), [1, 2, 4, 8, 16]),
        (Retry(attempts=4, base=5, backoff="fixed", jitter="none"), [5, 5, 5]),
    ],
)
async def test_retries_come_when_the_table_says(
    engine: Engine, clock: Clock, claimant: Claimant, retry: Retry, waits: list[int]
) -> None:
    await engine.jobs.enqueue([a_job(retry=retry, attempts=retry.attempts)], now=clock.now)
    seen = []
    job = await claimant.take_one()
    while job.retry and job.retry.retries(job.attempt, ["builtins.OSError"]):
        await claimant.fail(job, retry_in=job.retry.wait(job.attempt))
        wait = (await claimant.claim()).wait
        assert wait is not None
        seen.append(wait / SECOND)
        clock.now += wait
        job = await claimant.take_one()
    await claimant.fail(job)
    assert seen == waits
    assert (await job_of(engine, job.id)).attempts == job.max_attempts


@pytest.mark.row("B11")
async def test_stopped(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    claimed = await claimant.take_one()
    await engine.jobs.cancel([claimed.id], now=clock.now)
    clock.forward(1)
    assert await claimant.stop(claimed) == [APPLIED]
    job = await job_of(engine, claimed.id)
    assert (job.state, job.attempts, job.ended_at) == (JobState.CANCELLED, 0, clock.now)


@pytest.mark.row("B11")
async def test_a_run_that_completes_although_asked_to_stop_is_completed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job = await claimant.take_one()
    await engine.jobs.cancel([job.id], now=clock.now)
    await claimant.complete(job)
    assert await states_of(engine, [job]) == [JobState.COMPLETED]


@pytest.mark.row("B11")
@pytest.mark.parametrize("retry_in", [None, 0, SECOND])
async def test_a_run_that_fails_after_it_was_asked_to_stop_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant, retry_in: int | None
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    claimed = await claimant.take_one()
    await engine.jobs.cancel([claimed.id], now=clock.now)
    await claimant.fail(claimed, retry_in=retry_in)
    job = await job_of(engine, claimed.id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.CANCELLED, 1, 1)
    assert job.ended_at == clock.now


async def test_a_start_that_was_written_is_not_dated_anew(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    job = await claimant.take_one()
    clock.forward(1)
    started = clock.now
    await claimant.write(job, Started())
    clock.forward(5)
    await claimant.complete(job, ran=2 * SECOND)
    assert (await job_of(engine, job.id)).started_at == started


# Who may settle


@pytest.mark.row("B6")
async def test_only_the_holder_settles(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    zombie = await claimant.take_one()
    await engine.jobs.retire(claimant.id, now=clock.now)
    before = await snapshot(engine, clock)
    assert await claimant.complete(zombie) == [STALE]
    assert await snapshot(engine, clock) == before
    other = await a_claimant(engine, clock, name="other")
    job = await other.take_one()
    before = await snapshot(engine, clock)
    assert await claimant.complete(zombie) == [STALE]
    assert await claimant.fail(zombie) == [STALE]
    assert await claimant.stop(zombie) == [STALE]
    assert await snapshot(engine, clock) == before
    assert await other.complete(job) == [APPLIED]
    assert await claimant.complete(zombie) == [STALE]


@pytest.mark.row("B6")
async def test_a_repeated_settle_is_told_from_a_zombie(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await claimant.take_one()
    await claimant.fail(first, retry_in=0)
    assert await claimant.fail(first, retry_in=0) == [ALREADY]
    second = await claimant.take_one()
    assert await claimant.complete(first) == [ALREADY]
    assert await claimant.complete(second) == [APPLIED]
    assert await claimant.complete(second) == [ALREADY]
    assert await claimant.complete(first) == [STALE]
    assert (await job_of(engine, first.id)).failure_count == 1


async def test_unknown_jobs_and_wrong_fences_are_stale(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(), a_job(), a_job(delay=SECOND)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    first, second = await claimant.take()
    wrong = [
        Settlement(id=new_id(), fence=first.fence, outcome=Completed()),
        Settlement(id=first.id, fence=second.fence, outcome=Completed()),
        Settlement(id=jobs[2].id, fence=first.fence, outcome=Completed()),
        Settlement(id=first.id, fence=2**53 - 1, outcome=Completed()),
    ]
    before = await snapshot(engine, clock)
    assert (await claimant.settle(*wrong)).answers == [STALE] * 4
    assert await snapshot(engine, clock) == before


async def test_a_batch_that_only_has_wrong_fences_is_stale(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Nothing but the fence is wrong: an engine may take such a batch for an ordinary one."""
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    a, b, c, d = await claimant.take()
    before = await snapshot(engine, clock)
    for wrong in (
        [(a, a.fence + 1)],
        [(a, b.fence), (b, a.fence)],
        [(a, b.fence), (b, c.fence), (c, d.fence), (d, d.fence + 1)],
        [(b, b.fence - 2**20), (c, c.fence - 2**20)],
    ):
        settlements = [msgspec.structs.replace(completed(job), fence=fence) for job, fence in wrong]
        assert (await claimant.settle(*settlements)).answers == [STALE] * len(wrong)
        assert await snapshot(engine, clock) == before
    assert await claimant.complete(b, d, a, c) == [APPLIED] * 4


async def test_each_settlement_has_its_own_answer(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    a, b, c, d = await claimant.take()
    await claimant.complete(b)
    settled = await claimant.settle(
        completed(a),
        completed(b),
        settlement(c, Failed(failure=a_failure(), retry_in=SECOND)),
        msgspec.structs.replace(completed(d), fence=a.fence),
        completed(a),
        settlement(d, Stopped()),
    )
    assert settled.answers == [APPLIED, ALREADY, APPLIED, STALE, ALREADY, APPLIED]
    assert settled.claim is None
    states = [JobState.COMPLETED, JobState.COMPLETED, JobState.SCHEDULED, JobState.CANCELLED]
    assert await states_of(engine, [a, b, c, d]) == states


async def test_any_client_may_carry_the_outcome(connect: Connect, clock: Clock) -> None:
    claimant = await a_claimant(await connect(), clock)
    await claimant.engine.jobs.enqueue([a_job()], now=clock.now)
    job = await claimant.take_one()
    claimant.engine = await connect()
    assert await claimant.complete(job) == [APPLIED]


# What is kept


@pytest.mark.row("C6")
async def test_keep_nothing_leaves_a_tombstone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    done, dead = await claimant.take()
    await claimant.write(done, LogLine(number=1, level="info", message="x"), Checkpoint(name="a", value=b"1"))
    assert await claimant.complete(done) == [APPLIED]
    assert await claimant.fail(dead) == [APPLIED]
    assert await states_of(engine, [done, dead]) == [None, JobState.DEAD]
    assert await engine.inspect.log(done.id) == []
    assert await engine.inspect.checkpoints(done.id) == []
    clock.forward(3_599)
    assert await claimant.complete(done) == [ALREADY]
    (tombstone,) = await engine.jobs.watch([done.id], waiter="w", ttl=SECOND, now=clock.now)
    assert tombstone is not None
    assert (tombstone.state, tombstone.settled_fence) == (JobState.COMPLETED, done.fence)
    assert (tombstone.task, tombstone.queue) == ("t", "q")
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.completed, counts.window.completed) == (0, 1)


async def test_keep_body_false_drops_body_and_result(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_body=False), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    done, dead = await claimant.take()
    await claimant.complete(done)
    await claimant.fail(dead)
    job = await job_of(engine, done.id)
    assert (job.state, job.body, job.result) == (JobState.COMPLETED, None, None)
    assert (await job_of(engine, dead.id)).body is not None


async def test_a_retry_keeps_its_body_whatever_the_queue_keeps(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(keep_body=False, keep_completed=Keep(count=0))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(body=b"[[1],{}]")], now=clock.now)
    await claimant.fail(await claimant.take_one(), retry_in=0)
    assert (await claimant.take_one()).body == b"[[1],{}]"


async def test_long_texts_are_clipped(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    claimed = await claimant.take_one()
    failure = Failure(message="m" * 10_000 + "END", traceback="t" * 50_000 + "END")
    await claimant.fail(claimed, failure=failure)
    (kept,) = (await job_of(engine, claimed.id)).failures
    assert kept.message == "m" * MESSAGE_LIMIT
    assert kept.traceback.endswith("tEND")
    assert len(kept.traceback) == TRACEBACK_LIMIT


async def test_each_of_many_keeps_its_own_result(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    results = [None, b"1", b"", b"2" * 9_000, None, b"3", b"4"]
    await engine.jobs.enqueue(some_jobs(len(results) + 1), now=clock.now)
    fails, *others = await claimant.take()
    outcomes = [completed(job, result) for job, result in zip(others, results, strict=True)]
    outcomes.insert(3, settlement(fails, Failed(failure=a_failure())))
    assert (await claimant.settle(*outcomes)).answers == [APPLIED] * len(outcomes)
    found = [(await job_of(engine, job.id)).result for job in others]
    assert found == results
    assert await states_of(engine, [fails]) == [JobState.DEAD]


async def test_the_largest_result_is_kept_and_a_larger_one_refused(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    first, second = await claimant.take()
    before = await snapshot(engine, clock)
    with pytest.raises(PayloadTooLarge):
        await claimant.settle(completed(first), completed(second, b"x" * (PAYLOAD_LIMIT + 1)))
    assert await snapshot(engine, clock) == before
    await claimant.complete(first, result=b"x" * PAYLOAD_LIMIT)
    assert (await job_of(engine, first.id)).result == b"x" * PAYLOAD_LIMIT


@pytest.mark.row("A4")
async def test_a_crash_in_a_process_of_its_own_keeps_the_place_and_the_third_is_the_end(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    seqs, states = set(), []
    for crashes in (1, 2, 3):
        clock.forward(1)
        run = await claimant.take_one(suspects=1)
        crash = settlement(run, Crashed(message="signal 11"))
        assert (await claimant.settle(crash)).answers == [APPLIED]
        assert (await claimant.settle(crash)).answers == [ALREADY]
        job = await job_of(engine, new.id)
        assert (job.crashes, job.attempts, job.suspect, job.failure_count) == (crashes, 0, True, crashes)
        seqs.add(job.seq)
        states.append(job.state)
    assert states == [JobState.READY, JobState.READY, JobState.DEAD]
    assert len(seqs) == 1
    job = await job_of(engine, new.id)
    assert {(failure.kind, failure.message) for failure in job.failures} == {("crash", "signal 11")}
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.dead, counts.window.died, counts.window.failed) == (1, 1, 0)


async def test_a_crash_of_a_job_that_was_asked_to_stop_cancels_it(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    assert (await claimant.settle(settlement(run, Crashed()))).answers == [APPLIED]
    assert await states_of(engine, [run]) == [JobState.CANCELLED]
