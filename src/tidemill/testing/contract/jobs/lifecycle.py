"""Every call in every state: a job only makes the steps of `model.lifecycle`."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.lifecycle import allowed
from tidemill.model.jobs.run import ClaimedJob, LostRun, Started
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import Claimant, Clock, a_claimant, a_job, ids_of, job_of

HOUR_AHEAD = 3_600 * SECOND


class Case:
    """One job brought into a state, with the fence of its last run."""

    def __init__(self, engine: Engine, clock: Clock, claimant: Claimant, run: ClaimedJob) -> None:
        self.engine, self.clock, self.claimant, self.run = engine, clock, claimant, run

    async def state(self) -> JobState | None:
        (job,) = await self.engine.inspect.get([self.run.id])
        return job.state if job else None


async def bring(case: Case, state: JobState) -> None:
    """From running to the wanted state, the last fence being that of a run that is over."""
    match state:
        case JobState.RUNNING:
            await case.claimant.release(case.run)
            other = await a_claimant(case.engine, case.clock, name="holder")
            await other.take_one(ids=(case.run.id,))
        case JobState.READY:
            await case.claimant.release(case.run)
        case JobState.SCHEDULED:
            await case.claimant.release(case.run, delay=HOUR_AHEAD)
        case JobState.COMPLETED:
            await case.claimant.complete(case.run)
        case JobState.DEAD:
            await case.claimant.fail(case.run)
        case JobState.CANCELLED:
            await case.claimant.stop(case.run)
        case JobState.BLOCKED:
            raise AssertionError("a job does not go back to waiting for its parents")


async def by_sweep(case: Case) -> None:
    sweeper = await a_claimant(case.engine, case.clock, name="sweeper")
    for _ in range(6):
        case.clock.forward(2)
        await sweeper.heartbeat()
    assert (await case.engine.jobs.reclaim(sweeper.member.id, now=case.clock.now)).entitled


def lost_run(case: Case) -> LostRun:
    return LostRun(id=case.run.id, fence=case.run.fence, verdict="crash")


ACTIONS: dict[str, Callable[[Case], Awaitable[object]]] = {
    "enqueue": lambda c: c.engine.jobs.enqueue([a_job(id=c.run.id)], now=c.clock.now),
    "claim": lambda c: c.claimant.take(),
    "claim by id": lambda c: c.claimant.take(ids=(c.run.id,)),
    "complete": lambda c: c.claimant.complete(c.run),
    "fail": lambda c: c.claimant.fail(c.run),
    "retry": lambda c: c.claimant.fail(c.run, retry_in=0),
    "stop": lambda c: c.claimant.stop(c.run),
    "release": lambda c: c.claimant.release(c.run),
    "release with a delay": lambda c: c.claimant.release(c.run, delay=SECOND),
    "write": lambda c: c.claimant.write(c.run, Started()),
    "cancel": lambda c: c.engine.jobs.cancel([c.run.id], now=c.clock.now),
    "replay": lambda c: c.engine.jobs.replay([c.run.id], token=new_id(), now=c.clock.now),
    "drop": lambda c: c.engine.jobs.drop([c.run.id], now=c.clock.now),
    "promote": lambda c: c.engine.jobs.promote(now=c.clock.now),
    "retire": lambda c: c.engine.jobs.retire(c.claimant.id, [lost_run(c)], now=c.clock.now),
    "heartbeat": lambda c: c.claimant.heartbeat(held=()),
    "leave": lambda c: c.engine.members.leave(c.claimant.member.id, now=c.clock.now),
    "prune": lambda c: c.engine.jobs.prune(now=c.clock.now),
    "reclaim": by_sweep,
}

MOVES: dict[JobState, dict[str, JobState | None]] = {
    JobState.SCHEDULED: {"cancel": JobState.CANCELLED},
    JobState.READY: {
        "claim": JobState.RUNNING,
        "claim by id": JobState.RUNNING,
        "cancel": JobState.CANCELLED,
    },
    JobState.RUNNING: {"reclaim": JobState.READY},
    JobState.COMPLETED: {"replay": JobState.READY, "drop": None},
    JobState.DEAD: {"replay": JobState.READY, "drop": None},
    JobState.CANCELLED: {"replay": JobState.READY, "drop": None},
}
"""What each action by one who no longer holds the job may move; all the others change no state."""


@pytest.mark.row("B1", "B6")
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("state", MOVES)
async def test_a_job_makes_no_other_step(
    engine: Engine, clock: Clock, claimant: Claimant, state: JobState, action: str
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    case = Case(engine, clock, claimant, await claimant.take_one())
    await bring(case, state)
    await ACTIONS[action](case)
    after = await case.state()
    assert after == MOVES[state].get(action, state)
    assert after == state or allowed(state, after)


HOLDER_MOVES: dict[str, JobState] = {
    "complete": JobState.COMPLETED,
    "fail": JobState.DEAD,
    "retry": JobState.SCHEDULED,
    "stop": JobState.CANCELLED,
    "release": JobState.READY,
    "release with a delay": JobState.SCHEDULED,
    "retire": JobState.READY,
    "heartbeat": JobState.READY,
    "leave": JobState.READY,
    "reclaim": JobState.READY,
}


@pytest.mark.row("B1")
@pytest.mark.parametrize("action", ACTIONS)
async def test_the_holder_moves_a_running_job(
    engine: Engine, clock: Clock, claimant: Claimant, action: str
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    case = Case(engine, clock, claimant, await claimant.take_one())
    await ACTIONS[action](case)
    assert await case.state() == HOLDER_MOVES.get(action, JobState.RUNNING)


@pytest.mark.row("B1")
@pytest.mark.parametrize("action", ["enqueue", "claim", "claim by id", "replay", "drop", "promote", "prune"])
async def test_a_blocked_job_waits(engine: Engine, clock: Clock, claimant: Claimant, action: str) -> None:
    parent = a_job(queue="parents")
    child = a_job(after=(parent.id,))
    await engine.jobs.enqueue([parent, child], now=clock.now)
    parent_run = await claimant.take_one("parents")
    case = Case(engine, clock, claimant, parent_run)
    case.run = msgspec.structs.replace(parent_run, id=child.id)
    await ACTIONS[action](case)
    assert await case.state() == JobState.BLOCKED


@pytest.mark.row("B1")
async def test_a_job_is_in_one_state_wherever_it_is_read(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """The record, the list and the counts agree after each step of a long life."""

    async def agree() -> None:
        page = (await engine.inspect.list(JobFilter())).jobs
        (counts,) = await engine.inspect.counts(now=clock.now)
        for job in page:
            assert job.state is (await job_of(engine, job.id)).state
        for state in JobState:
            assert counts.in_state(state) == sum(job.state is state for job in page)

    new = a_job(delay=SECOND)
    await engine.jobs.enqueue([new, a_job(after=(new.id,))], now=clock.now)
    await agree()
    clock.forward(1)
    for end in ("release", "retry", "complete"):
        run = await claimant.take_one(ids=(new.id,)) if end != "release" else (await claimant.take())[0]
        await agree()
        await ACTIONS[end](Case(engine, clock, claimant, run))
        await engine.jobs.promote(now=clock.now)
        await agree()
    await engine.jobs.replay([new.id], token=new_id(), now=clock.now)
    await agree()
    await engine.jobs.cancel(ids_of((await engine.inspect.list(JobFilter())).jobs), now=clock.now)
    await agree()
