"""`on_dead`: a job that dies leaves a job of its handler, in the same step."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import handler_id, new_id, show_id
from tidemill.model.jobs.death import DeadJob, said
from tidemill.model.jobs.job import DropAnswer, Failure, JobRecord, JobState, NewJob
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Answer, Crashed, Failed, LostRun, Started
from tidemill.model.queues.queue import TOMBSTONE_AGE, Keep, QueueOptions
from tidemill.model.time import MINUTE, SECOND
from tidemill.model.view import JobFilter, TaskEntry
from tidemill.testing.contract.cluster.crash import a_sweeper, heartbeats, sweep
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_failure,
    a_job,
    configure,
    created,
    job_of,
    listed,
    settlement,
    snapshot,
    states_of,
)

DEAD, READY = JobState.DEAD, JobState.READY
HANDLER = TaskEntry(name="bury", queue="graves", priority=2, timeout=MINUTE, retry=Retry(attempts=3))


def mortal(**options: Any) -> NewJob:
    """A job with a handler."""
    return a_job(
        **{"on_dead": "bury", "key": "k", "body": b'[["\\u00fc",1.5],{"n":12345678901234567890}]', **options}
    )


def dead_job_of(job: JobRecord) -> DeadJob:
    """What a handler's job carries."""
    assert (job.codec, job.headers) == (1, None)
    assert job.body is not None
    ((dead,), named) = msgspec.json.decode(job.body, type=tuple[tuple[DeadJob], dict[str, None]])
    assert named == {}
    return dead


async def handler_of(engine: Engine, job: NewJob, replays: int = 0) -> JobRecord:
    """The job that handles the death of another, which must be there."""
    return await job_of(engine, handler_id(job.id, replays))


Way = Callable[[Engine, Clock, Claimant, NewJob], Awaitable[None]]


async def fail(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    await claimant.fail(await claimant.take_one())


async def crash(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    for _ in range(3):
        await claimant.settle(settlement(await claimant.take_one(suspects=1), Crashed(message="SIGSEGV")))


async def retire(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    for _ in range(3):
        run = await claimant.take_one(suspects=1)
        lost = LostRun(id=run.id, fence=run.fence, verdict="crash", message="SIGSEGV")
        await engine.jobs.retire(claimant.id, [lost], now=clock.now)
        claimant = Claimant(engine, clock, member=claimant.member)


async def reclaim(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    sweeper = await a_sweeper(engine, clock)
    for _ in range(2 + 3):  # two lost runs make a suspect, whose next ones are proof
        run = await claimant.take_one(suspects=1)
        await claimant.write(run, Started())
        await heartbeats(clock, 12, sweeper)
        await sweep(sweeper)
        claimant = await a_claimant(engine, clock)


async def expire(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    clock.forward(60)
    await engine.jobs.promote(now=clock.now)


async def expire_on_the_way(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    clock.forward(60)
    await engine.jobs.enqueue([a_job(on_dead=None)], now=clock.now)
    await claimant.take()


async def expire_by_id(engine: Engine, clock: Clock, claimant: Claimant, job: NewJob) -> None:
    clock.forward(60)
    await claimant.take(ids=(job.id,))


WAYS: dict[str, tuple[Way, str, int, int]] = {
    "it fails": (fail, "error", 1, 0),
    "it crashes its process": (crash, "crash", 0, 3),
    "its child dies": (retire, "crash", 0, 3),
    "its member vanishes": (reclaim, "crash", 0, 3),
    "it expires": (expire, "expired", 0, 0),
    "a claim finds it expired": (expire_on_the_way, "expired", 0, 0),
    "a claim by id finds it expired": (expire_by_id, "expired", 0, 0),
}
"""How a job dies, what it died of, attempts, crashes."""


@pytest.mark.row("D7")
@pytest.mark.parametrize("way", WAYS)
async def test_each_way_to_die_leaves_a_handler(
    way: str, engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    die, kind, attempts, crashes = WAYS[way]
    await engine.tasks.publish([HANDLER], now=clock.now)
    job = mortal(priority=0, expires=30 * SECOND if kind == "expired" else None)
    await engine.jobs.enqueue([job], now=clock.now)
    await die(engine, clock, claimant, job)
    dead, handler = await job_of(engine, job.id), await handler_of(engine, job)
    assert (dead.state, handler.state) == (DEAD, READY)
    assert (handler.task, handler.queue, handler.priority) == ("bury", "graves", 2)
    assert (handler.timeout, handler.retry, handler.max_attempts) == (MINUTE, None, 3)
    assert (handler.key, handler.on_dead, handler.schedule) == ("k", None, None)
    assert (handler.created_at, handler.ready_at) == (dead.ended_at, dead.ended_at)
    dead_job, error = dead_job_of(handler), dead.error
    assert error is not None
    assert dead_job == DeadJob(
        id=show_id(job.id),
        task="t",
        queue="q",
        key="k",
        attempts=attempts,
        crashes=crashes,
        failure=said(error),
        body='[["\\u00fc",1.5],{"n":12345678901234567890}]',
    )
    assert dead_job.failure.kind == kind
    assert (dead_job.args, dead_job.kwargs) == (["\u00fc", 1.5], {"n": 12345678901234567890})
    (run,) = await (await a_claimant(engine, clock, name="host:9")).take("graves")
    assert (run.id, run.task, run.attempt, run.body) == (handler.id, "bury", 1, handler.body)


@pytest.mark.row("D7")
async def test_only_death_leaves_one(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    done, stopped, dropped, again = (mortal() for _ in range(4))
    await engine.jobs.enqueue([done, stopped, dropped, again, a_job()], now=clock.now)
    runs = await claimant.take()
    await claimant.complete(runs[0])
    await engine.jobs.cancel([stopped.id, dropped.id], now=clock.now)
    await claimant.stop(runs[1])
    await claimant.fail(runs[2])  # cancelled, because that was asked
    await claimant.fail(runs[3], retry_in=SECOND)
    await claimant.fail(runs[4])  # dead, without a handler
    assert len(await listed(engine)) == 5
    assert await listed(engine, JobFilter(task="bury")) == []


@pytest.mark.row("D7")
async def test_without_an_entry_it_stands_in_the_queue_of_the_dead(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = mortal(key=None, priority=0)
    await engine.jobs.enqueue([job], now=clock.now)
    await fail(engine, clock, claimant, job)
    handler = await handler_of(engine, job)
    assert (handler.queue, handler.priority, handler.timeout, handler.max_attempts) == ("q", 5, None, 5)
    assert (handler.key, dead_job_of(handler).key) == (None, None)
    assert (await claimant.take_one()).id == handler.id


@pytest.mark.row("D7")
async def test_a_repeated_settle_leaves_no_second_one(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = mortal()
    await engine.jobs.enqueue([job], now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run)
    before = await snapshot(engine, clock)
    assert await claimant.fail(run) == [Answer.ALREADY]
    assert await snapshot(engine, clock) == before


@pytest.mark.row("D7")
async def test_a_death_after_a_replay_has_a_handler_of_its_own(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.tasks.publish([HANDLER], now=clock.now)
    job = mortal()
    await engine.jobs.enqueue([job], now=clock.now)
    await fail(engine, clock, claimant, job)
    await engine.jobs.replay([job.id], token=new_id(), now=clock.now)
    run = await claimant.take_one()
    await claimant.fail(run, failure=a_failure("again"))
    first, second = await handler_of(engine, job), await handler_of(engine, job, replays=1)
    assert (dead_job_of(first).replays, dead_job_of(second).replays) == (0, 1)
    assert (dead_job_of(first).failure.message, dead_job_of(second).failure.message) == ("no route", "again")
    assert len(await listed(engine, JobFilter(queue="graves"))) == 2


@pytest.mark.row("D7")
async def test_it_needs_nothing_of_a_job_of_which_nothing_is_kept(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_dead=Keep(count=0), keep_body=False), now=clock.now)
    await engine.tasks.publish([HANDLER], now=clock.now)
    job = mortal(body=b'[["%b"],{}]' % (b"x" * 5_000))
    await engine.jobs.enqueue([job], now=clock.now)
    await fail(engine, clock, claimant, job)
    assert await states_of(engine, [job]) == [None]
    dead = dead_job_of(await handler_of(engine, job))
    assert (dead.args, dead.kwargs) == (["x" * 5_000], {})
    assert dead.failure.message == "no route"


UNREADABLE = {
    "nothing": b"",
    "no text": b'[["\xff\xfe"],{}]',
    "half a character": b'[["\xc3"],{}]',
    "a surrogate": b'[["\xed\xa0\x80"],{}]',
    "NUL": b"\x00",
    "cut off": b"[[1],{}",
    "no call": b'{"a":1}',
    "half a call": b"[[1]]",
    "no number": b"[[NaN],{}]",
    "a lone surrogate": b'[["\\ud800"],{}]',
    "endless digits": b"[[1%b],{}]" % (b"0" * 5_000),
    "too deep": b"[%b%b,{}]" % (b"[" * 200_000, b"]" * 200_000),  # for every Python: 3.13 reads 5,000
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_cannot_be_read_is_in_nobodys_way(
    body: bytes, engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """A job may die of its payload: it dies all the same, and its handler gets it."""
    job, secret = mortal(body=body), mortal(codec=2)
    await engine.jobs.enqueue([job, secret], now=clock.now)
    await claimant.fail(*await claimant.take())
    assert await states_of(engine, [job, secret]) == [DEAD, DEAD]
    dead = dead_job_of(await handler_of(engine, job))
    assert (dead.args, dead.kwargs) == ([], {})
    assert dead_job_of(await handler_of(engine, secret)).body is None


@pytest.mark.parametrize("letter", ["x", "\u00df", "\u20ac", "\ud7ff", "\ue000", "\U0001f600", "\U0010ffff"])
async def test_what_can_be_read_is_told(
    letter: str, engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = mortal(body=f'[["{letter * 600}"],{{}}]'.encode())
    await engine.jobs.enqueue([job], now=clock.now)
    await fail(engine, clock, claimant, job)
    assert dead_job_of(await handler_of(engine, job)).args == [letter * 600]


@pytest.mark.row("D7")
@pytest.mark.parametrize("version", [1, 4, 5, 7, 8, 15])
async def test_whatever_id_a_job_has(version: int, engine: Engine, clock: Clock, claimant: Claimant) -> None:
    made = new_id()
    job = mortal(id=made[:6] + bytes([version << 4 | 3]) + made[7:])
    await engine.jobs.enqueue([job], now=clock.now)
    await fail(engine, clock, claimant, job)
    assert (await handler_of(engine, job)).task == "bury"


@pytest.mark.row("D7")
@pytest.mark.parametrize("kept", [True, False])
async def test_each_death_of_an_id_that_is_used_again_has_one(
    engine: Engine, clock: Clock, claimant: Claimant, kept: bool
) -> None:
    """The handler of the first is still there."""
    await engine.tasks.publish([HANDLER], now=clock.now)
    if not kept:
        await configure(engine, "q", QueueOptions(keep_dead=Keep(count=0)), now=clock.now)
    job = mortal()
    for _ in range(3):
        assert created(await engine.jobs.enqueue([job], now=clock.now)) == [True]
        await claimant.fail(await claimant.take_one())
        if kept:
            assert await engine.jobs.drop([job.id], now=clock.now) == [DropAnswer.DROPPED]
        else:
            clock.forward(TOMBSTONE_AGE / SECOND + 1)
            await claimant.heartbeat()
            await engine.jobs.prune(now=clock.now)
    handlers = [await handler_of(engine, job, number) for number in range(3)]
    assert {dead_job_of(handler).id for handler in handlers} == {show_id(job.id)}
    assert len(await listed(engine, JobFilter(task="bury"))) == 3


async def test_many_large_ones_that_a_claim_finds_expire_in_several_steps(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    large = [mortal(expires=SECOND, body=b'[["%b"],{}]' % (b"x" * 900_000)) for _ in range(8)]
    await engine.jobs.enqueue(large, now=clock.now)
    clock.forward(60)
    await claimant.heartbeat()
    await claimant.take("q")
    assert (await states_of(engine, large)).count(DEAD) == 5
    await claimant.take("q")
    assert await states_of(engine, large) == [DEAD] * 8


async def test_many_large_ones_expire_in_several_steps(engine: Engine, clock: Clock) -> None:
    """A step is bounded in what it copies, too."""
    large = [mortal(expires=SECOND, body=b'[["%b"],{}]' % (b"x" * 900_000)) for _ in range(8)]
    await engine.jobs.enqueue(large, now=clock.now)
    clock.forward(60)
    first = await engine.jobs.promote(now=clock.now)
    assert (first.jobs, first.wait) == (5, 0)
    assert (await engine.jobs.promote(now=clock.now)).jobs == 3
    assert await states_of(engine, large) == [DEAD] * 8
    for job in large:
        assert len(dead_job_of(await handler_of(engine, job)).args[0]) == 900_000


async def test_strange_texts_arrive_as_they_are(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    text = '\u0000 " \\ / \u2028 \U0001f600 %s </script>'
    job = mortal(key='k "\\', task='t"\\')
    await engine.jobs.enqueue([job], now=clock.now)
    await claimant.fail(await claimant.take_one(), failure=Failure(error="E", message=text, traceback=text))
    dead = dead_job_of(await handler_of(engine, job))
    assert (dead.key, dead.task) == (job.key, job.task)
    assert (dead.failure.message, dead.failure.traceback) == (text, text)


@pytest.mark.row("D7")
async def test_it_is_claimed_in_the_same_trip_and_named(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.tasks.publish([HANDLER], now=clock.now)
    job, moves = mortal(), Moves()
    await engine.jobs.enqueue([job], now=clock.now)
    run = await claimant.take_one()
    outcome = settlement(run, Failed(failure=a_failure()))
    claim = claimant.request("q", "graves")
    settled = await engine.jobs.settle([outcome], claim=claim, moves=moves, now=clock.now)
    assert settled.claim is not None
    assert [each.id for each in settled.claim.jobs] == [handler_id(job.id, 0)]
    assert [(move.state, move.task, move.queue) for move in moves.named] == [
        (DEAD, "t", "q"),
        (READY, "bury", "graves"),
    ]


async def test_those_who_wait_for_the_dead_are_not_concerned(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = mortal()
    waits = a_job(after=(job.id,))
    runs = a_job(after=(job.id,), parent_died="run")
    await engine.jobs.enqueue([job, waits, runs], now=clock.now)
    await fail(engine, clock, claimant, job)
    assert await states_of(engine, [waits, runs]) == [JobState.CANCELLED, READY]
    assert [each.id for each in await claimant.take()] == [handler_id(job.id, 0), runs.id]
