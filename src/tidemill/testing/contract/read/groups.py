"""`inspect.dead_groups`, and the filter by group: the dead letters that failed alike."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.engine.shared.paging import write_opaque
from tidemill.model.errors import BadInput
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import Failure, JobState
from tidemill.model.jobs.run import Crashed, LostRun, Started
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import SECOND
from tidemill.model.view import DeadGroup, JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_failure,
    a_job,
    configure,
    ids_of,
    listed,
    settlement,
    some_jobs,
)

TRACEBACK = """Traceback (most recent call last):
  File "/srv/release-{release}/shop/mail.py", line {line}, in send
    connect()
smtplib.SMTPException: refused
"""


def refused(number: int) -> Failure:
    """One cause, other words: another recipient, another release, another line."""
    return Failure(
        error="smtplib.SMTPException",
        message=f"user-{number}@example.org refused after {number}.5 s: 'mailbox {number}'",
        traceback=TRACEBACK.format(release=number, line=number),
    )


async def groups_of(engine: Engine, **filters: str) -> list[DeadGroup]:
    """All of them, one page after the other."""
    groups: list[DeadGroup] = []
    cursor = None
    while True:
        page = await engine.inspect.dead_groups(cursor=cursor, limit=2, **filters)
        groups += page.groups
        if page.cursor is None:
            return groups
        assert page.cursor != cursor, "a cursor must move on"
        cursor = page.cursor


@pytest.mark.row("F15")
async def test_dead_letters_that_failed_alike_are_a_group(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(5, task="shop.send"), now=clock.now)
    runs = await claimant.take()
    first_at = clock.now
    for number, run in enumerate(runs[:3]):
        await claimant.fail(run, failure=refused(number))
        clock.forward(1)
    await claimant.fail(runs[3], failure=a_failure("no such customer"))
    await claimant.complete(runs[4])
    groups = sorted(await groups_of(engine), key=lambda group: -group.count)
    big, small = groups
    assert (big.queue, big.task, big.count, big.first_at, big.last_at, big.sample, big.kind, big.error) == (
        "q", "shop.send", 3, first_at, first_at + 2 * SECOND, runs[2].id, "error", "smtplib.SMTPException",
    )  # fmt: skip
    assert big.message == refused(2).message
    assert (small.count, small.sample, small.message) == (1, runs[3].id, "no such customer")
    found = await listed(engine, JobFilter(group=big.name))
    assert ids_of(found) == [run.id for run in reversed(runs[:3])]
    assert {job.error and job.error.fingerprint for job in found} == {big.fingerprint}


async def test_a_group_is_of_one_task_and_shown_for_each_queue(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(queue=queue, task=task) for queue in "ba" for task in ("two", "one", "two")]
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.fail(*await claimant.take("a", "b"))
    names = [(group.queue, group.task, group.count) for group in await groups_of(engine)]
    assert names == [("a", "one", 1), ("a", "two", 2), ("b", "one", 1), ("b", "two", 2)]
    assert [group.queue for group in await groups_of(engine, task="two")] == ["a", "b"]
    assert [group.task for group in await groups_of(engine, queue="b")] == ["one", "two"]
    (group,) = await groups_of(engine, queue="b", task="two")
    assert len(await listed(engine, JobFilter(group=group.name))) == 4
    assert len(await listed(engine, JobFilter(group=group.name, queue="b"))) == 2
    assert await listed(engine, JobFilter(group=group.name, task="one")) == []
    assert await groups_of(engine, queue="nothing") == []
    assert await groups_of(engine, task="tw") == []


async def test_what_the_engine_causes_has_a_group_of_its_own(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(
        [a_job(task="late", expires=SECOND), a_job(task="bad", queue="b")], now=clock.now
    )
    for _ in range(3):
        worker = await a_claimant(engine, clock)
        run = await worker.take_one("b", suspects=1)
        lost = LostRun(id=run.id, fence=run.fence, verdict="crash", message="killed by signal 9")
        await engine.jobs.retire(worker.id, [lost], now=clock.now)
    await engine.jobs.enqueue([a_job(task="bad", queue="b")], now=clock.now)
    for _ in range(3):
        run = await claimant.take_one("b", suspects=1)
        await claimant.settle(settlement(run, Crashed(message=f"exit code {run.fence}")))
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    names = [(group.name, group.kind, group.count) for group in await groups_of(engine)]
    assert sorted(names) == [("bad/crash", "crash", 2), ("late/expired", "expired", 1)]


async def test_the_members_that_vanish_with_a_job_make_one_group(engine: Engine, clock: Clock) -> None:
    new = a_job(task="bad")
    await engine.jobs.enqueue([new], now=clock.now)
    sweeper = await a_claimant(engine, clock)
    for _ in range(5):
        if await listed(engine, JobFilter(state=JobState.DEAD)):
            break
        worker = await a_claimant(engine, clock)
        run = await worker.take_one(suspects=1)
        await worker.write(run, Started())
        for _ in range(20):
            clock.forward(1)
            await sweeper.heartbeat()
        assert (await engine.jobs.reclaim(sweeper.member.id, now=clock.now)).jobs == 1
    assert [group.name for group in await groups_of(engine)] == ["bad/crash"]


async def test_replay_drop_and_prune_leave_no_trace_in_a_group(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(keep_dead=Keep(age=100)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    runs = await claimant.take()
    for run in runs:
        await claimant.fail(run)
        clock.forward(1)
    (group,) = await groups_of(engine)
    assert (group.count, group.sample) == (4, runs[3].id)
    await engine.jobs.drop([runs[3].id], now=clock.now)
    await engine.jobs.replay([runs[1].id], token=new_id(), now=clock.now)
    (group,) = await groups_of(engine)
    assert (group.count, group.sample, group.last_at - group.first_at) == (2, runs[2].id, 2 * SECOND)
    await claimant.fail(*await claimant.take(), failure=a_failure("something else"))
    assert sorted(group.count for group in await groups_of(engine)) == [1, 2]
    clock.forward(99)
    await engine.jobs.prune(now=clock.now)
    (group,) = await groups_of(engine)
    assert (group.count, group.message) == (1, "something else")
    clock.forward(99)
    await engine.jobs.prune(now=clock.now)
    assert await groups_of(engine) == []


async def test_what_is_not_kept_is_in_no_group(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_dead=Keep(count=0)), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await claimant.fail(*await claimant.take())
    assert await groups_of(engine) == []


@pytest.mark.parametrize("group", ["", "task", "task/", "/3f9a1c2b44d0", "a b/3f9a1c2b44d0", "task/UPPER", 7])
async def test_a_group_that_cannot_be_is_refused(engine: Engine, group: str) -> None:
    with pytest.raises(BadInput):
        await engine.inspect.list(JobFilter(group=group))


async def test_only_dead_jobs_have_a_group(engine: Engine) -> None:
    with pytest.raises(BadInput, match="only dead jobs"):
        await engine.inspect.list(JobFilter(group="t/expired", state=JobState.READY))
    assert (await engine.inspect.list(JobFilter(group="t/expired", state=JobState.DEAD))).jobs == []


async def test_a_cursor_of_groups_belongs_to_its_filter(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job(task=name) for name in "abc"], now=clock.now)
    await claimant.fail(*await claimant.take())
    cursor = (await engine.inspect.dead_groups(limit=1)).cursor
    assert cursor is not None
    forged = write_opaque(b'["q",null]', b'["other","a","b"]')
    zero = write_opaque(b"[null,null]", b'["q","a","b\\u0000"]')
    for bad, queue in ((cursor, "q"), (cursor[:-4], None), ("?", None), (forged, "q"), (zero, None)):
        with pytest.raises(BadInput):
            await engine.inspect.dead_groups(queue=queue, cursor=bad)
    assert [group.task for group in (await engine.inspect.dead_groups(cursor=cursor)).groups] == ["b", "c"]
    for limit in (0, 1_001):
        with pytest.raises(BadInput):
            await engine.inspect.dead_groups(limit=limit)
