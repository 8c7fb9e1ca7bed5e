"""`transactions.complete`: the caller's rows and the outcome commit together. The engine's own clock runs."""

from typing import Any

import pytest

from tidemill.engine.protocol import Engine, TransactionsFacet
from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.event import waiter_topic
from tidemill.model.jobs.job import PAYLOAD_LIMIT, JobState
from tidemill.model.jobs.run import (
    LOG_LINES_KEPT,
    Answer,
    Checkpoint,
    Claim,
    ClaimedJob,
    Entry,
    Fate,
    LogLine,
    Note,
    Progress,
    Release,
    Settlement,
    Started,
    Stopped,
    Then,
)
from tidemill.model.member import LEASE, MemberInfo
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import HOUR, SECOND
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    UserConnection,
    a_claimant,
    a_failure,
    a_job,
    completed,
    configure,
    job_of,
    play,
    settlement,
    some_jobs,
    states_of,
)


class PlayedWorker(Claimant):
    """A claimant by the engine's own clock."""

    async def runs(self, *queues: str, most: int = 100) -> list[ClaimedJob]:
        claim: Claim = await self.engine.jobs.claim(self.request(*queues, most=most))
        self.receive(claim)
        return claim.jobs

    async def run_of(self, **options: Any) -> ClaimedJob:
        """A new job, running."""
        await self.engine.jobs.enqueue([a_job(**options)])
        (run,) = await self.runs(str(options.get("queue", "q")), most=1)
        return run


@pytest.fixture
async def worker(engine: Engine) -> PlayedWorker:
    """One whose member heartbeat once."""
    info = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    await engine.members.heartbeat(info)
    return PlayedWorker(engine, Clock(), member=info)


async def settle(engine: Engine, item: Settlement) -> Answer:
    (answer,) = (await engine.jobs.settle([item])).answers
    return answer


async def fate(transactions: TransactionsFacet, run: ClaimedJob) -> Fate:
    (found,) = await transactions.fates([(run.id, run.fence)])
    return found


@pytest.mark.row("B14", "F7")
async def test_the_outcome_stands_if_the_transaction_commits(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of(task="mail")
    assert play(connection, transactions.complete(completed(run, b'"x"', ran=3 * SECOND))) is Answer.APPLIED
    assert (await job_of(engine, run.id)).state is JobState.RUNNING
    connection.commit()
    job = await job_of(engine, run.id)
    assert (job.state, job.result, job.attempts) == (JobState.COMPLETED, b'"x"', 1)
    assert (job.settled_fence, job.expires_at) == (run.fence, None)
    assert job.ended_at is not None
    assert job.started_at == job.ended_at - 3 * SECOND
    assert await fate(transactions, run) is Fate.SETTLED
    assert await settle(engine, completed(run, b'"y"')) is Answer.ALREADY
    assert (await job_of(engine, run.id)).result == b'"x"'


@pytest.mark.row("B14", "F7")
async def test_nothing_happened_if_it_is_rolled_back(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()
    before = await job_of(engine, run.id)
    play(connection, transactions.complete(completed(run)))
    connection.rollback()
    assert await job_of(engine, run.id) == before
    assert await fate(transactions, run) is Fate.FREE
    assert await settle(engine, settlement(run, Stopped())) is Answer.APPLIED


@pytest.mark.row("B6", "B14")
async def test_a_stale_run_writes_nothing(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    old = await worker.run_of()
    await engine.jobs.release([Release(id=old.id, fence=old.fence)])
    assert play(connection, transactions.complete(completed(old))) is Answer.STALE
    connection.rollback()
    (run,) = await worker.runs()
    assert run.fence > old.fence
    before = await job_of(engine, run.id)
    for stale in (old.fence, run.fence + 1):
        item = Settlement(id=run.id, fence=stale, outcome=completed(run).outcome)
        connection.execute("BEGIN", ())
        assert play(connection, transactions.complete(item)) is Answer.STALE
        connection.commit()
    assert await job_of(engine, run.id) == before
    assert await fate(transactions, old) is Fate.GONE
    connection.execute("BEGIN", ())
    assert play(connection, transactions.complete(completed(run))) is Answer.APPLIED
    connection.commit()
    assert (await job_of(engine, run.id)).state is JobState.COMPLETED


async def test_a_run_that_was_settled_before(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run, failed = await worker.run_of(), await worker.run_of()
    play(connection, transactions.complete(completed(run)))
    assert play(connection, transactions.complete(completed(run))) is Answer.ALREADY
    connection.commit()
    await worker.fail(failed, retry_in=HOUR, failure=a_failure())
    connection.execute("BEGIN", ())
    assert play(connection, transactions.complete(completed(run))) is Answer.ALREADY
    assert play(connection, transactions.complete(completed(failed))) is Answer.ALREADY
    connection.commit()
    assert (await job_of(engine, failed.id)).state is JobState.SCHEDULED
    (counts,) = await engine.inspect.counts()
    assert (counts.running, counts.completed, counts.window.completed) == (0, 1, 1)


async def test_runs_of_one_claim_one_by_one_in_any_order(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    jobs = some_jobs(7)
    await engine.jobs.enqueue(jobs)
    runs = await worker.runs()
    for at in (3, 0, 6, 4):
        assert play(connection, transactions.complete(completed(runs[at]))) is Answer.APPLIED
    connection.commit()
    left = [runs[at] for at in (1, 2, 5)]
    assert await states_of(engine, left) == [JobState.RUNNING] * 3
    assert (await engine.jobs.settle([completed(run) for run in left])).answers == [Answer.APPLIED] * 3
    assert await states_of(engine, jobs) == [JobState.COMPLETED] * 7
    (counts,) = await engine.inspect.counts()
    assert (counts.running, counts.completed, counts.window.completed) == (0, 7, 7)
    assert await engine.jobs.retire(worker.id) == 0, "nothing is left of the runs"


@pytest.mark.row("F7")
async def test_permits_are_free_with_the_commit(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    limits = QueueOptions(concurrency=3, per_key=Limit(concurrency=1), per_task={"t": Limit(concurrency=2)})
    await configure(engine, "q", limits)
    await engine.jobs.enqueue([a_job(key=key) for key in "aabb"])
    runs = await worker.runs()
    assert sorted(str(run.key) for run in runs) == ["a", "b"]
    assert await worker.runs() == []
    play(connection, transactions.complete(completed(runs[0])))
    connection.commit()
    (next_run,) = await worker.runs()
    assert next_run.key == runs[0].key


async def test_children_follow(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()
    child = a_job(after=(run.id,), queue="children")
    await engine.jobs.enqueue([child])
    play(connection, transactions.complete(completed(run)))
    connection.commit()
    assert [job.id for job in await worker.runs("children")] == [child.id]


async def test_what_follows_the_outcome_is_in_the_transaction(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    await engine.schedules.put([Schedule(name="s", timing=Every(seconds=60), job=a_job(), next_at=1)])
    (schedule,) = await engine.schedules.list()
    old = await worker.run_of()
    then = Then(schedule="s", schedule_in=HOUR, schedule_version=schedule.version - 1)
    play(connection, transactions.complete(completed(old, then=then)))
    connection.commit()
    assert [each.next_at for each in await engine.schedules.list()] == [1]
    connection.execute("BEGIN", ())
    run, next_one = await worker.run_of(), a_job()
    then = Then(jobs=(next_one,), schedule="s", schedule_in=HOUR, schedule_version=schedule.version)
    item = completed(run, then=then)
    play(connection, transactions.complete(item))
    assert await states_of(engine, [next_one]) == [None]
    connection.rollback()
    connection.execute("BEGIN", ())
    play(connection, transactions.complete(item))
    connection.commit()
    assert await states_of(engine, [run, next_one]) == [JobState.COMPLETED, JobState.READY]
    (schedule,) = await engine.schedules.list()
    assert schedule.next_at is not None
    assert abs(schedule.next_at - await engine.now() - HOUR) < 60 * SECOND


@pytest.mark.parametrize(
    "options", [QueueOptions(keep_body=False), QueueOptions(keep_completed=Keep(count=0))]
)
async def test_a_queue_that_keeps_little(
    engine: Engine,
    transactions: TransactionsFacet,
    connection: UserConnection,
    worker: PlayedWorker,
    options: QueueOptions,
) -> None:
    await configure(engine, "q", options)
    mine, plain = await worker.run_of(), await worker.run_of()
    for run in (mine, plain):
        line = LogLine(number=1, level="info", message="m")
        await engine.jobs.write([Note(id=run.id, fence=run.fence, entry=note) for note in (Started(), line)])
    await settle(engine, completed(plain))
    play(connection, transactions.complete(completed(mine)))
    connection.commit()
    seen = []
    for run in (mine, plain):
        (record,) = await engine.inspect.get([run.id])
        (watched,) = await engine.jobs.watch([run.id], waiter="", ttl=0)
        assert watched is not None
        assert watched.settled_fence == run.fence
        log = [line.message for line in await engine.inspect.log(run.id)]
        seen.append((record and (record.state, record.body, record.result), watched.state, log))
        assert await settle(engine, completed(run)) is Answer.ALREADY
    assert seen[0] == seen[1]
    (counts,) = await engine.inspect.counts()
    assert (counts.running, counts.window.completed) == (0, 2)
    assert counts.completed == (0 if options.keeps(engine.keeps)[0].nothing else 2)


async def test_what_it_still_had_to_note_is_in_the_transaction(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()

    def noted(*entries: Entry) -> list[Note]:
        return [Note(id=run.id, fence=run.fence, entry=entry) for entry in entries]

    lines = [LogLine(number=n, level="info", message=f"\u00e9{n}") for n in range(1, 1_004)]
    await engine.jobs.write(noted(lines[0]))
    last = Progress(value=b'{"done":3}')
    notes = noted(Started(), *lines, Progress(value=b"{}"), last, Checkpoint(name="a", value=b"1"))
    assert play(connection, transactions.complete(completed(run, ran=9 * SECOND), notes)) is Answer.APPLIED
    assert len(await engine.inspect.log(run.id)) == 1
    connection.commit()
    log = await engine.inspect.log(run.id)
    assert [line.message for line in log] == [line.message for line in lines[-LOG_LINES_KEPT:]]
    job = await job_of(engine, run.id)
    assert (job.progress, job.state) == (last.value, JobState.COMPLETED)
    assert await engine.inspect.checkpoints(run.id) == [Checkpoint(name="a", value=b"1")]
    assert job.ended_at is not None
    assert job.started_at is not None
    assert job.ended_at - job.started_at < 5 * SECOND, "a start that was noted counts"


async def test_a_stale_run_notes_nothing(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    old = await worker.run_of()
    await engine.jobs.release([Release(id=old.id, fence=old.fence)])
    note = Note(id=old.id, fence=old.fence, entry=LogLine(number=1, level="info", message="m"))
    assert play(connection, transactions.complete(completed(old), [note])) is Answer.STALE
    connection.commit()
    assert await engine.inspect.log(old.id) == []
    with pytest.raises(BadInput, match="of the same run"):
        transactions.complete(completed(await worker.run_of()), [note])


async def test_a_cancel_that_came_too_late(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()
    await engine.jobs.cancel([run.id])
    assert play(connection, transactions.complete(completed(run))) is Answer.APPLIED
    connection.commit()
    assert (await job_of(engine, run.id)).state is JobState.COMPLETED


async def test_nobody_waits_for_an_open_transaction(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    """But for SQLite, where there is one writer at a time."""
    await engine.jobs.enqueue(some_jobs(3))
    run, other, third = await worker.runs()
    play(connection, transactions.complete(completed(run)))
    if await fate(transactions, run) is not Fate.OPEN:
        connection.rollback()
        pytest.skip("this engine has one writer")
    subscription = await engine.signals.subscribe(waiter_topic("w"))
    (seen,) = await engine.jobs.watch([run.id], waiter="w", ttl=HOUR)
    assert seen is not None
    assert seen.state is JobState.RUNNING
    assert await worker.complete(other) == [Answer.APPLIED]
    await engine.members.heartbeat(worker.member)
    await engine.jobs.enqueue([a_job()])
    assert len(await worker.runs(most=1)) == 1
    assert await engine.jobs.retire(worker.id) == 2  # `third` and the new one; `run` is held by somebody else
    assert await states_of(engine, [run, third]) == [JobState.RUNNING, JobState.READY]
    connection.commit()
    assert await states_of(engine, [run]) == [JobState.COMPLETED]
    await subscription.close()


async def test_what_a_retirement_had_to_leave_comes_back(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, clock: Clock
) -> None:
    claimant, sweeper = await a_claimant(engine, clock), await a_claimant(engine, clock, name="host:2")
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    play(connection, transactions.complete(completed(run)))
    if await fate(transactions, run) is not Fate.OPEN:
        connection.rollback()
        pytest.skip("this engine has one writer")
    while clock.now - START <= LEASE:  # from then on it may sweep
        clock.forward(1)
        await sweeper.heartbeat()
        await claimant.heartbeat()
    assert await engine.jobs.retire(claimant.id, now=clock.now) == 0
    assert (await engine.jobs.reclaim(sweeper.member.id, now=clock.now)).jobs == 0
    assert await states_of(engine, [run]) == [JobState.RUNNING]
    connection.rollback()
    swept = await engine.jobs.reclaim(sweeper.member.id, now=clock.now)
    assert (swept.entitled, swept.jobs) == (True, 1)
    assert await states_of(engine, [run]) == [JobState.READY]


async def test_a_member_whose_job_is_held_by_a_transaction_is_dropped_after_it(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, clock: Clock
) -> None:
    claimant, sweeper = await a_claimant(engine, clock), await a_claimant(engine, clock, name="host:2")
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    run, other = await claimant.take()
    play(connection, transactions.complete(completed(run)))
    if await fate(transactions, run) is not Fate.OPEN:
        connection.rollback()
        pytest.skip("this engine has one writer")
    while clock.now - START <= LEASE:
        clock.forward(1)
        await sweeper.heartbeat()
    swept = await engine.jobs.reclaim(sweeper.member.id, now=clock.now)
    assert (swept.jobs, swept.gone) == (1, [])
    assert await states_of(engine, [run, other]) == [JobState.RUNNING, JobState.READY]
    connection.commit()
    swept = await engine.jobs.reclaim(sweeper.member.id, now=clock.now)
    assert (swept.jobs, swept.gone) == (0, [claimant.member.name])
    assert await states_of(engine, [run]) == [JobState.COMPLETED]


async def test_a_waiter_learns_of_it(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()
    await engine.jobs.watch([run.id], waiter="w", ttl=HOUR)
    play(connection, transactions.complete(completed(run)))
    connection.commit()
    (seen,) = await engine.jobs.watch([run.id], waiter="w", ttl=HOUR)
    assert seen is not None
    assert seen.state is JobState.COMPLETED


async def test_fates(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run, other = await worker.run_of(), await worker.run_of()
    await settle(engine, completed(other))
    runs = [(run.id, run.fence), (other.id, other.fence), (run.id, run.fence - 1), (b"x" * 16, 1)]
    assert await transactions.fates(runs) == [Fate.FREE, Fate.SETTLED, Fate.GONE, Fate.GONE]
    assert await transactions.fates([]) == []


async def test_bad_outcomes_are_refused_before_any_statement(
    transactions: TransactionsFacet, connection: UserConnection, worker: PlayedWorker
) -> None:
    run = await worker.run_of()
    with pytest.raises(BadInput, match="only a completion"):
        transactions.complete(settlement(run, Stopped()))
    with pytest.raises(PayloadTooLarge):
        transactions.complete(completed(run, b"x" * (PAYLOAD_LIMIT + 1)))
    with pytest.raises(BadInput):
        transactions.complete(completed(run, then=Then(jobs=(a_job(after=(run.id,)),))))
    with pytest.raises(BadInput):
        transactions.complete(completed(run, ran=-1))
