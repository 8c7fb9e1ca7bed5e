"""Whoever keeps an account of the events knows what the engine knows: no step is left out or made up."""

import random
from collections import defaultdict
from typing import Any

import msgspec
import pytest

from tests.integration.events.conftest import Open, Process
from tests.integration.events.reading import new_jobs, read_until
from tests.integration.supervisor.processes import until
from tidemill import Event, Gap, Tidemill
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import FINAL, Failure, JobState
from tidemill.model.jobs.lifecycle import check_step
from tidemill.model.jobs.run import (
    ClaimedJob,
    ClaimRequest,
    Completed,
    Crashed,
    Failed,
    LostRun,
    Outcome,
    Release,
    Settlement,
    Stopped,
    Then,
    Want,
)
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.model.time import HOUR

STEPS = 120
END = "end"
"""The queue of the last job."""


class Life:
    """What producers, a worker, its supervisor and an operator do, by the dice."""

    def __init__(self, process: Process, seed: int) -> None:
        self.engine: Any = process.engine
        self.dice = random.Random(seed)
        self.jobs: list[JobId] = []
        self.runs: dict[JobId, ClaimedJob] = {}
        self.member = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
        self.claimant, self.number = new_id(), 0

    async def go_on(self) -> None:
        steps = (
            self.enqueue, self.enqueue, self.claim, self.claim, self.claim, self.settle, self.settle,
            self.release, self.cancel, self.replay, self.promote, self.heartbeat, self.retire, self.leave,
        )  # fmt: skip
        await self.dice.choice(steps)()

    async def enqueue(self) -> None:
        made = []
        for job in new_jobs(self.dice.randint(1, 4)):
            options: dict[str, Any] = self.dice.choice(
                ({}, {}, {"delay": 1}, {"delay": HOUR}, {"expires": 1}, {"after": 1})
            )
            if "after" in options:
                died = self.dice.choice(("cancel", "run"))
                options = {"after": tuple(self.some(self.jobs)), "parent_died": died}
            made.append(msgspec.structs.replace(job, **options))
        await self.engine.jobs.enqueue(made)
        self.jobs += [job.id for job in made]
        if any(job.after for job in made):  # their state is read from their records
            await until(lambda: not self.engine.emitter.busy)

    async def claim(self) -> None:
        await self.engine.members.heartbeat(self.member)
        self.number += 1
        self.hold(await self.engine.jobs.claim(self.request()))

    async def settle(self) -> None:
        chosen = self.some(list(self.runs.values()))
        settlements = [
            Settlement(id=run.id, fence=run.fence, outcome=self.outcome(), then=self.then()) for run in chosen
        ]
        for run in chosen:
            del self.runs[run.id]
        await self.engine.members.heartbeat(self.member)
        self.number += 1
        settled = await self.engine.jobs.settle(settlements, claim=self.request())
        self.hold(settled.claim)

    async def release(self) -> None:
        chosen = self.some(list(self.runs.values()))
        await self.engine.jobs.release(
            [Release(id=run.id, fence=run.fence, delay=self.dice.choice((None, 1, HOUR))) for run in chosen]
        )
        for run in chosen:
            del self.runs[run.id]

    async def cancel(self) -> None:
        await self.engine.jobs.cancel(self.some(self.jobs))

    async def replay(self) -> None:
        await self.engine.jobs.replay(self.some(self.jobs), token=new_id())

    async def promote(self) -> None:
        await self.engine.jobs.promote()

    async def heartbeat(self) -> None:
        """Some of what it held was lost on the way."""
        for run in self.some(list(self.runs.values())):
            del self.runs[run.id]
        held = tuple(run.fence for run in self.runs.values())
        mine = ClaimantHeartbeat(claimant=self.claimant, answered_through=self.number, held=held)
        await self.engine.members.heartbeat(self.member, [mine])

    async def retire(self) -> None:
        lost_runs = [
            LostRun(id=run.id, fence=run.fence, verdict=self.dice.choice(("suspect", "crash")))
            for run in self.some(list(self.runs.values()))
        ]
        await self.engine.jobs.retire(self.claimant, lost_runs)
        self.claimant, self.number, self.runs = new_id(), 0, {}

    async def leave(self) -> None:
        await self.engine.members.leave(self.member.id)
        self.claimant, self.number, self.runs = new_id(), 0, {}

    def request(self) -> ClaimRequest:
        return ClaimRequest(
            member=self.member.id, claimant=self.claimant, number=self.number,
            wants=(Want("default"),), most=6, suspects=6,
        )  # fmt: skip

    def hold(self, claim: Any) -> None:
        self.runs |= {job.id: job for job in claim.jobs}

    def outcome(self) -> Outcome:
        failure = Failure(error="E", message="no")
        return self.dice.choice(
            (
                Completed(), Completed(result=b"1"), Failed(failure=failure), Stopped(), Crashed(message="9"),
                Failed(failure=failure, retry_in=1), Failed(failure=failure, retry_in=HOUR),
            )
        )  # fmt: skip

    def then(self) -> Then | None:
        if self.dice.random() < 0.7:
            return None
        [job] = new_jobs(1, delay=self.dice.choice((0, HOUR)))
        self.jobs.append(job.id)
        known = [msgspec.structs.replace(job, id=job_id) for job_id in self.some(self.jobs)[:1]]
        return Then(jobs=(job, *known))

    def some(self, of: list[Any]) -> list[Any]:
        return self.dice.sample(of, min(len(of), self.dice.randint(0, 3)))


@pytest.mark.every_engine(1)
@pytest.mark.row("C2")
@pytest.mark.parametrize("seed", range(3))
async def test_the_events_of_a_job_are_its_life(app: Tidemill, open_process: Open, seed: int) -> None:
    process = await open_process()
    life = Life(process, seed)
    async with app.events() as events:
        for _ in range(STEPS):
            await life.go_on()
        [last] = new_jobs(1, queue=END)
        await process.engine.jobs.enqueue([last])
        found = await read_until(
            events, lambda found: bool(found) and isinstance(found[-1], Event) and found[-1].queue == END
        )
    assert not [one for one in found if isinstance(one, Gap)]
    emitted: defaultdict[JobId, list[JobState]] = defaultdict(list)
    for one in found[:-1]:
        assert isinstance(one, Event)
        emitted[one.job_id].append(one.state)
    stored = {}
    for start in range(0, len(life.jobs), 500):
        for job in await process.engine.inspect.get(life.jobs[start : start + 500]):
            if job is not None:  # a `then` of an outcome that was stale was not stored
                stored[job.id] = job.state
    assert {job_id: states[-1] for job_id, states in emitted.items()} == stored
    for states in emitted.values():
        for before, after in zip([None, *states], states, strict=False):
            if (before, after) != (None, JobState.CANCELLED):  # a new child of a dead parent
                check_step(before, after)  # raises where there is no such step
    assert {state for states in emitted.values() for state in states} == set(JobState), (
        "it has seen everything"
    )
    assert sum(len(states) > 4 for states in emitted.values()) > 5
    assert any(state in FINAL for states in emitted.values() for state in states[:-1]), "and replays"
