"""`members`: heartbeats, what they release and learn, sign-off, and health."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, Refused
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.model.member import HEARTBEAT, LEASE, MARK_SIZE, TASKS_LIMIT, Health, MemberInfo
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    START,
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    ids_of,
    job_of,
    snapshot,
    some_jobs,
    states_of,
)


@pytest.mark.row("D2")
async def test_a_heartbeat_registers_and_introduces(engine: Engine, clock: Clock) -> None:
    info = MemberInfo(
        id=new_id(),
        name="host:7",
        host="host",
        pid=7,
        version="1.2",
        roles=("worker", "controller"),
        queues=("a", "b"),
        slots=10,
        detail=b'{"rss":1}',
        tasks=b"\x00\xff\x80a",
        heartbeat=SECOND // 5,
        lease=SECOND,
    )
    reply = await engine.members.heartbeat(info, now=clock.now)
    assert (reply.new, reply.now, reply.lost, reply.stop_requests) == (True, clock.now, [], [])
    (member,) = await engine.members.list(now=clock.now)
    assert member.info == info
    assert (member.since, member.heartbeat_at, member.steady_since) == (START, START, START)
    assert (member.health, member.running) == (Health.HEALTHY, 0)


async def test_tasks_that_are_no_marks_are_refused(engine: Engine, clock: Clock) -> None:
    for tasks in (b"abc", bytes(MARK_SIZE * (TASKS_LIMIT + 1))):
        with pytest.raises(BadInput, match="marks of 4 bytes"):
            await engine.members.heartbeat(MemberInfo(id=new_id(), name="a", tasks=tasks), now=clock.now)


async def test_the_latest_member_info_counts(engine: Engine, clock: Clock) -> None:
    first = MemberInfo(id=new_id(), name="a", slots=1)
    await engine.members.heartbeat(first, now=clock.now)
    clock.forward(1)
    second = MemberInfo(id=first.id, name="a", slots=9, queues=("q",))
    assert not (await engine.members.heartbeat(second, now=clock.now)).new
    (member,) = await engine.members.list(now=clock.now)
    assert (member.info, member.since, member.heartbeat_at) == (second, START, clock.now)


async def test_heartbeat_numbers_grow_in_the_namespace(connect: Connect, clock: Clock) -> None:
    one = Claimant(await connect(), clock, name="a")
    two = Claimant(await connect(), clock, name="b")
    numbers = [(await member.heartbeat()).number for member in (one, two, two, one)]
    assert numbers == sorted(set(numbers))


# What is released


@pytest.mark.row("A4")
async def test_an_answered_job_that_is_not_held_comes_back(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    kept, lost = await claimant.take(most=2)
    await claimant.take(most=1)
    clock.forward(1)
    del claimant.held[lost.fence]
    reply = await claimant.heartbeat()
    assert (reply.new, reply.lost) == (False, [])
    assert (await job_of(engine, kept.id)).state is JobState.RUNNING
    job = await job_of(engine, lost.id)
    assert (job.state, job.seq, job.attempts, job.lost_runs) == (JobState.READY, lost.seq, 0, 0)
    assert job.failure_count == 0
    assert (await claimant.take_one()).id == lost.id


@pytest.mark.row("A4")
async def test_a_claim_on_its_way_is_left_alone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """The heartbeat left before the claim's answer came: it cannot know those jobs yet."""
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await claimant.take(most=1)
    taken = await engine.jobs.claim(claimant.request(most=1), now=clock.now)
    await claimant.heartbeat()
    assert await states_of(engine, taken.jobs) == [JobState.RUNNING]
    claimant.number = claimant.answered = 2  # the answer was lost, and the child gave up on it
    await claimant.heartbeat()
    assert await states_of(engine, taken.jobs) == [JobState.READY]


async def test_claimants_that_are_not_mentioned_are_left_alone(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.members.heartbeat(claimant.member, now=clock.now)
    sibling = Claimant(engine, clock, member=claimant.member)
    await sibling.heartbeat(answered=9)
    assert await states_of(engine, [run]) == [JobState.RUNNING]


async def test_what_a_member_holds_no_more_is_told(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    running, settled, released, other = await claimant.take()
    held = [running.fence, settled.fence, released.fence, 2**52]
    await claimant.complete(settled)
    await claimant.release(released)
    stranger = await a_claimant(engine, clock, name="other")
    await stranger.take_one(ids=(released.id,))
    reply = await claimant.heartbeat(held=[*held, other.fence])
    assert sorted(reply.lost) == sorted(held[1:])


@pytest.mark.row("B11")
async def test_a_job_that_a_heartbeat_releases_after_a_stop_request_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    await claimant.heartbeat(held=())
    assert await states_of(engine, [run]) == [JobState.CANCELLED]


async def test_stop_requests_of_all_children_are_answered(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    sibling = Claimant(engine, clock, member=claimant.member)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    runs = [await claimant.take_one(), await sibling.take_one()]
    await engine.jobs.cancel(ids_of(runs), now=clock.now)
    reply = await claimant.heartbeat()
    assert sorted((ask.id, ask.fence) for ask in reply.stop_requests) == sorted(
        (run.id, run.fence) for run in runs
    )


# Sign-off


@pytest.mark.row("D3")
async def test_leaving_gives_everything_back(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    sibling = Claimant(engine, clock, member=claimant.member)
    runs = [*await claimant.take(most=2), await sibling.take_one()]
    assert await engine.members.leave(claimant.member.id, now=clock.now) == 3
    assert await engine.members.list(now=clock.now) == []
    for run in runs:
        job = await job_of(engine, run.id)
        assert (job.state, job.seq, job.lost_runs, job.failure_count) == (JobState.READY, run.seq, 0, 0)
    assert await claimant.complete(runs[0]) == [Answer.STALE]
    other = await a_claimant(engine, clock, name="other")
    assert ids_of(await other.take()) == ids_of(jobs)
    assert await engine.members.leave(claimant.member.id, now=clock.now) == 0


async def test_a_member_that_left_may_come_back_with_new_children(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.take()
    await engine.members.leave(claimant.member.id, now=clock.now)
    assert (await claimant.heartbeat()).new
    with pytest.raises(Refused):
        await claimant.claim()
    assert len(await Claimant(engine, clock, member=claimant.member).take()) == 1


async def test_a_stranger_who_leaves_changes_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.take()
    before = await snapshot(engine, clock)
    assert await engine.members.leave(new_id(), now=clock.now) == 0
    assert await snapshot(engine, clock) == before


# Health


@pytest.mark.row("D3")
async def test_silence_makes_late_and_then_gone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    healths = []
    for silence in (0, 2 * HEARTBEAT, 2 * HEARTBEAT + 1, LEASE, LEASE + 1):
        clock.now = START + silence
        healths.append((await engine.members.list(now=clock.now))[0].health)
    late = Health.LATE
    assert healths == [Health.HEALTHY, Health.HEALTHY, late, late, Health.GONE]


@pytest.mark.row("D2")
async def test_a_gap_restarts_the_steady_time(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    clock.now += 2 * HEARTBEAT
    await claimant.heartbeat()
    assert (await engine.members.list(now=clock.now))[0].steady_since == START
    clock.now += 2 * HEARTBEAT + 1
    await claimant.heartbeat()
    (member,) = await engine.members.list(now=clock.now)
    assert (member.steady_since, member.since, member.health) == (clock.now, START, Health.HEALTHY)


@pytest.mark.row("D3")
async def test_members_are_listed_by_name_with_what_they_run(engine: Engine, clock: Clock) -> None:
    for name in ("b", "c", "a"):
        await a_claimant(engine, clock, name=name)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    busy = await a_claimant(engine, clock, name="bb")
    await busy.take(most=2)
    listed = [(member.info.name, member.running) for member in await engine.members.list(now=clock.now)]
    assert listed == [("a", 0), ("b", 0), ("bb", 2), ("c", 0)]


@pytest.mark.row("D3")
async def test_with_no_live_worker_jobs_wait(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take(most=1)
    clock.forward(86_400)
    assert await states_of(engine, jobs) == [JobState.RUNNING, JobState.READY]
    new = await a_claimant(engine, clock, name="new")
    assert ids_of(await new.take()) == [jobs[1].id]


async def test_a_number_that_no_fence_can_be_is_lost(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """It stands in a table that a child has written over: its member lives on, and so does its other job."""
    await engine.jobs.enqueue(some_jobs(1), now=clock.now)
    run = await claimant.take_one()
    absurd = (-1, 2**53 + 1, 2**63 - 1)
    reply = await claimant.heartbeat(held=(run.fence, *absurd), answered=2**63 - 1)
    assert reply.lost == list(absurd)
    assert (await claimant.heartbeat()).lost == []
