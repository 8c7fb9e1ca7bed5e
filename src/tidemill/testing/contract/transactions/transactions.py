"""`transactions`: enqueue inside the caller's own transaction. Here the engine's own clock runs."""

from collections.abc import Sequence

import msgspec
import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine, Script, TransactionsFacet
from tidemill.model.errors import BadInput, IdTaken
from tidemill.model.jobs.job import JobState, KnownCall, NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.member import MemberInfo
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import HOUR, SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    UserConnection,
    a_job,
    completed,
    configure,
    ids_of,
    job_of,
    play,
    some_jobs,
    states_of,
)


def run(connection: UserConnection, transactions: TransactionsFacet, jobs: list[NewJob]) -> None:
    """Enqueue in the transaction that is open."""
    play(connection, transactions.enqueue(jobs))


async def take(engine: Engine, most: int = 100, queue: str = "q") -> list[bytes]:
    """Claim by the engine's own clock."""
    info = MemberInfo(id=b"m" * 16, name="host:1")
    claimant = Claimant(engine, Clock(), member=info)
    await engine.members.heartbeat(info)
    return ids_of((await engine.jobs.claim(claimant.request(queue, most=most))).jobs)


@pytest.mark.row("F7")
async def test_jobs_exist_if_the_transaction_commits(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    jobs = some_jobs(3)
    run(connection, transactions, jobs)
    assert await states_of(engine, jobs) == [None] * 3
    connection.commit()
    assert await states_of(engine, jobs) == [JobState.READY] * 3
    assert await take(engine) == ids_of(jobs)


class Struck(Exception):
    """Something that strikes between two statements."""


def strike(connection: UserConnection, script: Script[object], after: int) -> bool:
    """Play so many statements of a script and then fail; False if it ended before."""
    try:
        statement = next(script)
        for _ in range(after):
            statement = script.send(list(connection.execute(statement.sql, statement.parameters)))
    except StopIteration:
        return False
    try:
        statement = script.throw(Struck())
        while True:
            statement = script.send(list(connection.execute(statement.sql, statement.parameters)))
    except Struck:  # when everything is undone
        return True


@pytest.mark.row("F7")
async def test_a_script_that_fails_half_way_leaves_nothing_even_if_the_rest_commits(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    known = some_jobs(1)
    await engine.jobs.enqueue(known)
    before = await engine.inspect.counts()
    for again, check in (([], None), (known, lambda found: None)):
        after = 0
        while strike(connection, transactions.enqueue((jobs := some_jobs(2)) + again, check=check), after):
            connection.commit()
            assert await states_of(engine, jobs) == [None] * 2
            assert await engine.inspect.counts() == before
            connection.execute("BEGIN", ())
            after += 1
        connection.rollback()
        connection.execute("BEGIN", ())
        assert after > 0


@pytest.mark.row("F7")
async def test_jobs_do_not_exist_if_it_is_rolled_back(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    jobs = some_jobs(3)
    run(connection, transactions, jobs)
    connection.rollback()
    assert await states_of(engine, jobs) == [None] * 3
    assert await take(engine) == []


@pytest.mark.row("F7")
async def test_everything_about_the_jobs_is_as_with_a_plain_enqueue(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    plain = a_job(
        task="mail",
        priority=1,
        body=b"\x00\xff'[1]",
        codec=2,
        headers=b'{"a":"\xc3\xa9"}',
        key="k'\u00e9",
        delay=HOUR,
        expires=2 * HOUR,
        timeout=SECOND,
        retry=Retry(attempts=2, base=0.5),
        attempts=2,
        on_dead="dead",
        schedule="s",
    )
    mine = msgspec.structs.replace(plain, id=a_job().id)
    await engine.jobs.enqueue([plain])
    run(connection, transactions, [mine])
    connection.commit()
    expected, job = await job_of(engine, plain.id), await job_of(engine, mine.id)
    assert expected.due_at is not None
    assert job.due_at is not None
    times = ("created_at", "due_at", "expires_at", "ready_at")
    for field in job.__struct_fields__:
        if field not in ("id", "seq", *times):
            assert getattr(job, field) == getattr(expected, field), field
    assert job.due_at - job.created_at == HOUR
    assert job.expires_at == job.created_at + 2 * HOUR
    assert abs(job.created_at - await engine.now()) < 60 * SECOND


async def test_an_existing_id_is_passed_over(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    known = a_job(body=b"[[1],{}]")
    await engine.jobs.enqueue([known])
    run(connection, transactions, [msgspec.structs.replace(known, body=b"[[2],{}]"), new := a_job()])
    run(connection, transactions, [new])
    connection.commit()
    assert (await job_of(engine, known.id)).body == b"[[1],{}]"
    assert await take(engine) == ids_of([known, new])


async def test_a_check_is_given_what_the_transaction_sees_and_may_refuse_it(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    known, mine, new = a_job(body=b"[[1],{}]"), a_job(task="mine"), a_job()
    await engine.jobs.enqueue([known])
    run(connection, transactions, [mine])
    given: list[KnownCall] = []

    def note(found: Sequence[KnownCall]) -> None:
        given[:] = sorted(found, key=lambda call: call.id)

    def refuse(found: Sequence[KnownCall]) -> None:
        note(found)
        raise IdTaken("a sign")

    def stored(*jobs: NewJob) -> list[KnownCall]:
        return sorted(
            [KnownCall(job.id, job.task, job.codec, job.body) for job in jobs], key=lambda call: call.id
        )

    other = msgspec.structs.replace(known, body=b"[[2],{}]")
    for jobs, found in (([other], [known]), ([mine], [mine]), ([other, new, mine], [known, new, mine])):
        with pytest.raises(IdTaken, match="a sign"):
            play(connection, transactions.enqueue(jobs, check=refuse))
        assert given == stored(*found)
    twin = msgspec.structs.replace(new, task="twin")
    play(connection, transactions.enqueue([other, new, twin], check=note))  # all that was undone is new again
    assert given == stored(known, new)
    connection.commit()
    assert await take(engine) == ids_of([known, mine, new])


async def test_a_check_is_given_tombstones_and_jobs_without_bodies(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    await configure(engine, "gone", QueueOptions(keep_completed=Keep(count=0)))
    await configure(engine, "small", QueueOptions(keep_body=False))
    jobs = [a_job(queue="gone", task="t"), a_job(queue="small", task="t")]
    await engine.jobs.enqueue(jobs)
    claimant = Claimant(engine, Clock())
    await engine.members.heartbeat(claimant.member)
    runs = (await engine.jobs.claim(claimant.request("gone", "small"))).jobs
    await engine.jobs.settle([completed(run) for run in runs])
    given: list[KnownCall] = []
    play(connection, transactions.enqueue(jobs, check=given.extend))
    connection.rollback()
    assert {(call.id, call.task, call.body) for call in given} == {(job.id, "t", None) for job in jobs}


async def test_jobs_stand_in_the_order_of_the_call(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    first, mine, last = some_jobs(2), some_jobs(50), some_jobs(2)
    await engine.jobs.enqueue(first)
    run(connection, transactions, mine[:30])
    run(connection, transactions, mine[30:])
    connection.commit()
    await engine.jobs.enqueue(last)
    assert await take(engine) == ids_of([*first, *mine, *last])


async def test_queues_of_any_kind(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    await configure(engine, "fair", QueueOptions(fair_by="key"))
    run(connection, transactions, [a_job(queue="fair", key=key) for key in "aaab"])
    run(connection, transactions, [a_job(queue="unseen")])
    connection.commit()
    assert [queue.name for queue in await engine.queues.list()] == ["fair", "unseen"]
    fair = await take(engine, most=2, queue="fair")
    keys = [job and job.key for job in await engine.inspect.get(fair)]
    assert keys == ["a", "b"]
    counts = {each.queue: each.ready for each in await engine.inspect.counts()}
    assert counts == {"fair": 2, "unseen": 1}


async def test_a_due_time_is_waited_for(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    jobs = [a_job(delay=HOUR), a_job(at=1), a_job(at=await engine.now() + HOUR)]
    run(connection, transactions, jobs)
    connection.commit()
    assert await states_of(engine, jobs) == [JobState.SCHEDULED, JobState.READY, JobState.SCHEDULED]


@pytest.mark.parametrize(
    "jobs",
    [
        [a_job(priority=11)],
        [a_job(), a_job(queue="no queue")],
        [a_job(after=(a_job().id,))],
        some_jobs(BATCH_LIMIT + 1),
    ],
    ids=["priority", "queue", "after", "too many"],
)
async def test_bad_jobs_are_refused_before_any_statement(
    transactions: TransactionsFacet, jobs: list[NewJob]
) -> None:
    with pytest.raises(BadInput):
        transactions.enqueue(jobs)


async def test_many_jobs_can_be_claimed_at_once(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    """A queue without lanes of its own needs no putting in order first."""
    jobs = some_jobs(1_000)
    run(connection, transactions, jobs)
    run(connection, transactions, some_jobs(1_000))
    connection.commit()
    assert await take(engine, most=1_000) == ids_of(jobs)
