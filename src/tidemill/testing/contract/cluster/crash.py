"""`jobs.reclaim`: a whole member died, and who may say so."""

import asyncio
from typing import Any

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.errors import Refused
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, Started
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
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

HEARTBEAT_S, LEASE_S = 2.0, 10.0


async def heartbeats(clock: Clock, seconds: float, *members: Claimant) -> None:
    """Let time pass; these members heartbeat all the while, the others are silent."""
    for _ in range(round(seconds / HEARTBEAT_S)):
        clock.forward(HEARTBEAT_S)
        for member in members:
            await member.heartbeat()


async def a_sweeper(engine: Engine, clock: Clock, name: str = "sweeper") -> Claimant:
    return await a_claimant(engine, clock, name=name)


async def sweep(sweeper: Claimant, **options: Any) -> tuple[bool, int, list[str]]:
    answer = await sweeper.engine.jobs.reclaim(sweeper.member.id, now=sweeper.clock.now, **options)
    return answer.entitled, answer.jobs, answer.gone


@pytest.mark.row("A4", "D3")
async def test_the_jobs_of_a_gone_member_come_back(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    runs = await claimant.take(most=2)
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, LEASE_S, sweeper)
    assert await sweep(sweeper) == (True, 0, [])  # silent for exactly its lease: not gone yet
    await heartbeats(clock, HEARTBEAT_S, sweeper)
    assert await sweep(sweeper) == (True, 2, ["host:1"])
    for run in runs:
        job = await job_of(engine, run.id)
        assert (job.state, job.seq, job.attempts) == (JobState.READY, run.seq, 0)
        assert (job.lost_runs, job.crashes, job.suspect) == (1, 0, False)
        assert [(failure.kind, failure.member) for failure in job.failures] == [("lost", "host:1")]
    assert [member.info.name for member in await engine.members.list(now=clock.now)] == ["sweeper"]
    assert await claimant.complete(runs[0]) == [Answer.STALE]
    assert ids_of(await sweeper.take()) == ids_of(jobs)
    assert await sweep(sweeper) == (True, 0, [])


async def test_a_gone_member_that_returns_begins_anew(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    await sweep(sweeper)
    reply = await claimant.heartbeat()
    assert (reply.new, reply.lost) == (True, [run.fence])
    with pytest.raises(Refused):
        await claimant.claim()
    child = Claimant(engine, clock, member=claimant.member)
    assert (await child.take_one()).id == run.id


async def test_a_gone_member_without_jobs_is_dropped(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    assert await sweep(sweeper) == (True, 0, ["host:1"])


async def test_those_who_heartbeat_keep_their_jobs(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 30, sweeper, claimant)
    assert await sweep(sweeper) == (True, 0, [])
    assert await claimant.complete(run) == [Answer.APPLIED]


async def test_a_sweep_is_bounded(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    await claimant.take()
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    jobs, gone = [], []
    for _ in range(4):
        _, moved, dropped = await sweep(sweeper, limit=2)
        jobs.append(moved)
        gone += dropped
    assert (jobs, gone) == ([2, 2, 1, 0], ["host:1"])
    (counts,) = await engine.inspect.counts(now=clock.now)
    assert (counts.ready, counts.running) == (5, 0)


async def test_each_member_has_its_own_lease(engine: Engine, clock: Clock) -> None:
    quick = await a_claimant(engine, clock, name="quick", lease=SECOND, heartbeat=SECOND // 5)
    slow = await a_claimant(engine, clock, name="slow", lease=60 * SECOND)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    await quick.take_one()
    await slow.take_one()
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    assert await sweep(sweeper) == (True, 1, ["quick"])


# Who may sweep


async def test_a_stranger_may_not_sweep(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.take()
    clock.forward(60)
    before = await snapshot(engine, clock)
    answer = await engine.jobs.reclaim(new_id(), now=clock.now)
    assert (answer.entitled, answer.jobs, answer.gone) == (False, 0, [])
    assert await snapshot(engine, clock) == before


@pytest.mark.row("A4")
async def test_a_fresh_sweeper_waits_one_lease(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    clock.forward(60)
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, LEASE_S - HEARTBEAT_S, sweeper)
    clock.now += 2 * SECOND - 1
    assert await sweep(sweeper) == (False, 0, [])
    assert await states_of(engine, [run]) == [JobState.RUNNING]
    clock.now += 1
    assert await sweep(sweeper) == (True, 1, ["host:1"])


@pytest.mark.row("A4")
async def test_a_gap_in_its_own_heartbeats_restarts_the_wait(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 20, sweeper, claimant)
    clock.now += 4 * SECOND + 1  # nobody reached the engine
    assert await sweep(sweeper) == (False, 0, [])
    await sweeper.heartbeat()
    await heartbeats(clock, 8, sweeper)
    assert await sweep(sweeper) == (False, 0, [])
    assert await states_of(engine, [run]) == [JobState.RUNNING]
    await heartbeats(clock, 2, sweeper)
    assert await sweep(sweeper) == (True, 1, ["host:1"])


@pytest.mark.row("A4")
async def test_an_outage_of_three_leases_costs_nobody_a_job(engine: Engine, clock: Clock) -> None:
    members = [await a_claimant(engine, clock, name=f"m{n}") for n in range(4)]
    await engine.jobs.enqueue(some_jobs(8), now=clock.now)
    runs = [(member, run) for member in members for run in await member.take(most=2)]
    await heartbeats(clock, 20, *members)
    clock.forward(3 * LEASE_S)
    for late, member in enumerate(members):  # they come back one after the other, each within one lease
        await heartbeats(clock, HEARTBEAT_S, *members[:late])
        assert not (await member.heartbeat()).new
        for sweeper in members[: late + 1]:
            assert (await sweep(sweeper))[1:] == (0, [])
    await heartbeats(clock, 2 * LEASE_S, *members)
    for member in members:
        assert await sweep(member) == (True, 0, [])
    assert [await member.complete(run) for member, run in runs] == [[Answer.APPLIED]] * 8


# What lost runs say about a job


async def lose(engine: Engine, clock: Clock, *, started: bool = False) -> None:
    """A member claims the one job, and vanishes."""
    victim = await a_claimant(engine, clock, name="victim")
    run = await victim.take_one(suspects=1)
    if started:
        await victim.write(run, Started())
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    assert await sweep(sweeper) == (True, 1, ["victim"])
    await engine.members.leave(sweeper.member.id, now=clock.now)


async def test_the_second_lost_run_makes_a_suspect(engine: Engine, clock: Clock) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    seen = []
    for _ in range(4):
        await lose(engine, clock)
        job = await job_of(engine, new.id)
        seen.append((job.lost_runs, job.suspect, job.crashes, job.state.value))
    assert seen == [
        (1, False, 0, "ready"),
        (2, True, 0, "ready"),
        (3, True, 0, "ready"),  # its start was not written: no proof
        (4, True, 0, "ready"),
    ]


async def test_three_started_suspects_lost_with_their_members_are_proof(engine: Engine, clock: Clock) -> None:
    new = a_job()
    await engine.jobs.enqueue([new], now=clock.now)
    for _ in range(5):
        await lose(engine, clock, started=True)
    job = await job_of(engine, new.id)
    assert (job.lost_runs, job.crashes, job.state, job.attempts) == (5, 3, JobState.DEAD, 0)
    kinds = [failure.kind for failure in job.failures]
    assert kinds == ["lost", "lost", "crash", "crash", "crash"]
    assert job.ended_at == clock.now


async def test_a_lost_job_that_was_asked_to_stop_is_cancelled(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await engine.jobs.cancel([run.id], now=clock.now)
    sweeper = await a_sweeper(engine, clock)
    await heartbeats(clock, 12, sweeper)
    assert (await sweep(sweeper))[1] == 1
    assert await states_of(engine, [run]) == [JobState.CANCELLED]


@pytest.mark.row("B2")
async def test_several_sweepers_act_once(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(3)]
    victims = [await a_claimant(clients[0], clock, name=f"v{n}") for n in range(3)]
    await clients[0].jobs.enqueue(some_jobs(60), now=clock.now)
    runs = [run for victim in victims for run in await victim.take(most=20)]
    sweepers = [await a_sweeper(client, clock, f"s{n}") for n, client in enumerate(clients)]
    await heartbeats(clock, 12, *sweepers)
    answers = await asyncio.gather(*(sweep(sweeper, limit=7) for sweeper in sweepers for _ in range(8)))
    assert sum(jobs for _, jobs, _ in answers) == 60
    assert sorted(name for _, _, gone in answers for name in gone) == ["v0", "v1", "v2"]
    records = [job for job in await clients[0].inspect.get(ids_of(runs)) if job]
    assert {(job.state, job.lost_runs, job.failure_count) for job in records} == {(JobState.READY, 1, 1)}
