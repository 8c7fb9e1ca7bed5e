"""Every refusal is `BadInput`, at the edge, and changes nothing."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import BadInput, EngineClosed, PayloadTooLarge
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import PAYLOAD_LIMIT, JobState
from tidemill.model.jobs.run import (
    Checkpoint,
    ClaimRequest,
    Completed,
    LogLine,
    LostRun,
    Note,
    Progress,
    Release,
    Settlement,
    Started,
    Then,
    Want,
)
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.model.queues.layers import Declaration
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import FAR_FUTURE, MINUTE, SECOND
from tidemill.model.view import PAGE_LIMIT, JobFilter, TaskEntry
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_job,
    completed,
    configure,
    created,
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
    "handler of no name": {"on_dead": "a\ud800b"},
    "schedule of no name": {"schedule": "a\0b"},
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
    "retire": lambda engine, _, ids: engine.jobs.retire(
        new_id(), [LostRun(id=job_id, fence=1, verdict="crash") for job_id in ids]
    ),
    "wants": lambda engine, claimant, ids: engine.jobs.claim(
        a_request(claimant, wants=tuple(Want(job_id.hex()) for job_id in ids))
    ),
    "heartbeat": lambda engine, _, ids: engine.members.heartbeat(
        MemberInfo(id=new_id(), name="m"),
        [ClaimantHeartbeat(claimant=job_id, answered_through=0, held=()) for job_id in ids],
    ),
}


# Values of the wrong kind, which stores would take in different ways: every method refuses every one. Many of
# them share a test, because each is refused before it reaches the store.

WithValue = Callable[[Engine, Claimant, Any], Awaitable[object]]


async def not_refused(
    engine: Engine, claimant: Claimant, methods: dict[str, WithValue], values: dict[str, Any]
) -> list[str]:
    """Which methods took which values."""
    taken = []
    for method, call in methods.items():
        for name, value in values.items():
            try:
                await call(engine, claimant, value)
            except BadInput:
                continue
            except Exception as error:
                taken.append(f"{method}, {name}: {error!r}")
            else:
                taken.append(f"{method}, {name}: accepted")
    return taken


def a_request(by: Claimant, **instead: Any) -> ClaimRequest:
    """The next claim, altered."""
    return msgspec.structs.replace(by.request(), **instead)


WRONG_IDS: dict[str, Any] = {"too short": b"x" * 15, "a text": "x" * 16, "bytes that change": bytearray(16)}


def _with_one_id(method: str, engine: Engine, claimant: Claimant, wrong: Any) -> Awaitable[object]:
    return BATCHES[method](engine, claimant, [wrong])


WITH_AN_ID: dict[str, WithValue] = {
    **{
        method: partial(_with_one_id, method)
        for method in (
            *("enqueue", "claim", "settle", "write", "release", "cancel"),
            *("replay", "drop", "watch", "get", "retire", "heartbeat"),
        )
    },
    "log": lambda engine, _, wrong: engine.inspect.log(wrong),
    "checkpoints": lambda engine, _, wrong: engine.inspect.checkpoints(wrong),
    "the claim's member": lambda engine, claimant, wrong: engine.jobs.claim(
        a_request(claimant, member=wrong)
    ),
    "the claimant": lambda engine, claimant, wrong: engine.jobs.claim(a_request(claimant, claimant=wrong)),
    "the settle's claim": lambda engine, claimant, wrong: engine.jobs.settle(
        [], claim=a_request(claimant, ids=(wrong,))
    ),
    "the retired": lambda engine, _, wrong: engine.jobs.retire(wrong),
    "the sweeper": lambda engine, _, wrong: engine.jobs.reclaim(wrong),
    "the member": lambda engine, _, wrong: engine.members.heartbeat(MemberInfo(id=wrong, name="m")),
    "leave": lambda engine, _, wrong: engine.members.leave(wrong),
    "the token": lambda engine, _, wrong: engine.jobs.replay([ONE_ID], token=wrong),
}


async def test_an_id_that_is_none_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(id=ONE_ID)], now=clock.now)
    await engine.jobs.cancel([ONE_ID], now=clock.now)
    before = await snapshot(engine, clock)
    assert await not_refused(engine, claimant, WITH_AN_ID, WRONG_IDS) == []
    assert await snapshot(engine, clock) == before


WRONG_NUMBERS: dict[str, Any] = {
    "below 0": -1,
    "not exact": 1 << 53,
    "not a whole": 1.5,
    "a text": "1",
    "a truth": True,
}

WITH_A_NUMBER: dict[str, WithValue] = {
    "the claim's number": lambda engine, claimant, n: engine.jobs.claim(a_request(claimant, number=n)),
    "the claim's most": lambda engine, claimant, n: engine.jobs.claim(a_request(claimant, most=n)),
    "a want's most": lambda engine, claimant, n: engine.jobs.claim(
        a_request(claimant, wants=(Want("q", n),))
    ),
    "suspects": lambda engine, claimant, n: engine.jobs.claim(a_request(claimant, suspects=n)),
    "settle": lambda engine, _, n: engine.jobs.settle([Settlement(id=ONE_ID, fence=n, outcome=Completed())]),
    "ran": lambda engine, _, n: engine.jobs.settle(
        [Settlement(id=ONE_ID, fence=1, outcome=Completed(), ran=n)]
    ),
    "write": lambda engine, _, n: engine.jobs.write([Note(id=ONE_ID, fence=n, entry=Started())]),
    "a line": lambda engine, _, n: engine.jobs.write(
        [Note(id=ONE_ID, fence=1, entry=LogLine(number=n, level="info", message=""))]
    ),
    "release": lambda engine, _, n: engine.jobs.release([Release(id=ONE_ID, fence=n)]),
    "a delay": lambda engine, _, n: engine.jobs.release([Release(id=ONE_ID, fence=1, delay=n)]),
    "promote": lambda engine, _, n: engine.jobs.promote(limit=n),
    "prune": lambda engine, _, n: engine.jobs.prune(limit=n),
    "reclaim": lambda engine, _, n: engine.jobs.reclaim(new_id(), limit=n),
    "watch": lambda engine, _, n: engine.jobs.watch([ONE_ID], waiter="w", ttl=n),
    "heartbeat": lambda engine, _, n: engine.members.heartbeat(
        MemberInfo(id=new_id(), name="m", heartbeat=n)
    ),
    "acquire": lambda engine, _, n: engine.leases.acquire("l", holder="h", ttl=n),
    "unlock": lambda engine, _, n: engine.leases.release("l", fence=n),
    "log": lambda engine, _, n: engine.inspect.log(ONE_ID, after=n),
    "audit": lambda engine, _, n: engine.inspect.audit(before=n),
    "counts": lambda engine, _, n: engine.inspect.counts(window=n),
    "series": lambda engine, _, n: engine.inspect.series(since=n, until=MINUTE, step=MINUTE),
    "list": lambda engine, _, n: engine.inspect.list(JobFilter(), limit=n),
}


async def test_a_number_that_is_none_is_refused(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    before = await snapshot(engine, clock)
    assert await not_refused(engine, claimant, WITH_A_NUMBER, WRONG_NUMBERS) == []
    assert await snapshot(engine, clock) == before


WRONG_TEXTS: dict[str, Any] = {"a zero": "a\0b", "half a pair": "a\ud800b", "a number": 7}

WITH_A_TEXT: dict[str, WithValue] = {
    "a want": lambda engine, claimant, text: engine.jobs.claim(a_request(claimant, wants=(Want(text),))),
    "a level": lambda engine, _, text: engine.jobs.write(
        [Note(id=ONE_ID, fence=1, entry=LogLine(number=1, level=text, message=""))]
    ),
    "a checkpoint": lambda engine, _, text: engine.jobs.write(
        [Note(id=ONE_ID, fence=1, entry=Checkpoint(name=text, value=b""))]
    ),
    "cancel": lambda engine, _, text: engine.jobs.cancel([ONE_ID], by=text),
    "replay": lambda engine, _, text: engine.jobs.replay([ONE_ID], token=new_id(), by=text),
    "drop": lambda engine, _, text: engine.jobs.drop([ONE_ID], by=text),
    "watch": lambda engine, _, text: engine.jobs.watch([ONE_ID], waiter=text, ttl=SECOND),
    "then": lambda engine, _, text: engine.jobs.settle(
        [Settlement(id=ONE_ID, fence=1, outcome=Completed(), then=Then(schedule=text))]
    ),
    "declare": lambda engine, _, text: engine.queues.declare(text, {"q": Declaration()}),
    "declare a key": lambda engine, _, text: engine.queues.declare(
        "shop", {"q": Declaration(fields={"fair_by": "key", "weights": {text: 2}})}
    ),
    "retire": lambda engine, _, text: engine.queues.retire("q", text, declared_at=0),
    "override": lambda engine, _, text: engine.queues.override("q", {"concurrency": 1}, by=text),
    "override why": lambda engine, _, text: engine.queues.override("q", {"concurrency": 1}, why=text),
    "override what": lambda engine, _, text: engine.queues.override("q", {"fair_by": text}),
    "reset": lambda engine, _, text: engine.queues.reset("q", by=text),
    "reset what": lambda engine, _, text: engine.queues.reset("q", [text]),
    "pause": lambda engine, _, text: engine.queues.pause("q", why=text),
    "pause a task": lambda engine, _, text: engine.tasks.pause(text),
    "why a task is paused": lambda engine, _, text: engine.tasks.pause("t", why=text),
    "end a task's pause": lambda engine, _, text: engine.tasks.resume(text),
    "resume": lambda engine, _, text: engine.queues.resume(text),
    "lock": lambda engine, _, text: engine.leases.acquire(text, holder="h", ttl=SECOND),
    "holder": lambda engine, _, text: engine.leases.acquire("l", holder=text, ttl=SECOND),
    "unlock": lambda engine, _, text: engine.leases.release(text, fence=1),
    "member": lambda engine, _, text: engine.members.heartbeat(MemberInfo(id=new_id(), name=text)),
    "pause a schedule": lambda engine, _, text: engine.schedules.pause(text, paused=True),
    "retire a schedule": lambda engine, _, text: engine.schedules.retire(text, retired=True),
    "remove a schedule": lambda engine, _, text: engine.schedules.remove(text),
    "series": lambda engine, _, text: engine.inspect.series(since=0, until=MINUTE, step=MINUTE, queue=text),
    "signal": lambda engine, _, text: engine.signals.publish("topic", text),
}


async def test_a_text_that_a_store_cannot_keep_is_refused(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(id=ONE_ID)], now=clock.now)
    before = await snapshot(engine, clock)
    assert await not_refused(engine, claimant, WITH_A_TEXT, WRONG_TEXTS) == []
    assert await snapshot(engine, clock) == before


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
    "a queue with a bad name": lambda engine: configure(engine, "a b", QueueOptions()),
    "an option that does not exist": lambda engine: engine.queues.declare(
        "shop", {"q": Declaration(fields={"concurency": 3})}
    ),
    "a limit of none": lambda engine: engine.queues.declare(
        "shop", {"p": Declaration(fields={"concurrency": 3}), "q": Declaration(fields={"concurrency": 0})}
    ),
    "weights without keys": lambda engine: engine.queues.declare(
        "shop", {"q": Declaration(fields={"weights": {"a": 2}})}
    ),
    "a declaration of nobody": lambda engine: engine.queues.declare("", {"q": Declaration()}),
    "an override of an unknown queue": lambda engine: engine.queues.override("nothing", {"concurrency": 3}),
    "a reset of an unknown queue": lambda engine: engine.queues.reset("nothing"),
    "an override of nothing": lambda engine: engine.queues.override("q", {}),
    "an override that does not exist": lambda engine: engine.queues.override("q", {"concurency": 3}),
    "an override that cannot be": lambda engine: engine.queues.override("q", {"rate": "5/s"}),
    "an override that contradicts": lambda engine: engine.queues.override("q", {"weights": {"a": 2}}),
    "an override of what is in the job": lambda engine: engine.queues.override("q", {"timeout": 5.0}),
    "a pause of an unknown queue": lambda engine: engine.queues.pause("nothing", by="ann"),
    "a resume of an unknown queue": lambda engine: engine.queues.resume("nothing", by="ann"),
    "a filter by half a character": lambda engine: engine.inspect.list(JobFilter(text="a\ud800b")),
    "progress that is text": lambda engine: engine.jobs.write(
        [Note(id=ONE_ID, fence=1, entry=Progress(value="1"))]  # type: ignore[arg-type]
    ),
    "a result that is text": lambda engine: engine.jobs.settle(
        [Settlement(id=ONE_ID, fence=1, outcome=Completed(result="1"))]  # type: ignore[arg-type]
    ),
    "a verdict of one's own": lambda engine: engine.jobs.retire(
        new_id(),
        [LostRun(id=ONE_ID, fence=1, verdict="guilty")],  # type: ignore[arg-type]
    ),
    "a reason of one's own": lambda engine: engine.jobs.release(
        [Release(id=ONE_ID, fence=1, reason="bored")]  # type: ignore[arg-type]
    ),
    "a member that nobody could read": lambda engine: engine.members.heartbeat(
        MemberInfo(id=new_id(), name="m", host=7)  # type: ignore[arg-type]
    ),
    "a member with a short lease": lambda engine: engine.members.heartbeat(
        MemberInfo(id=new_id(), name="m", heartbeat=SECOND, lease=2 * SECOND)
    ),
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
    assert created(await engine.jobs.enqueue([job], now=clock.now)) == [True]
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
    assert created(await other.jobs.enqueue([a_job()], now=clock.now)) == [True]
