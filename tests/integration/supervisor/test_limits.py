"""Limits of a cluster: two members, of two processes each, with more slots than the limits allow.

Judged by the engine's clock: a job is held from its claim to its end. The limits are set as operators set
them, or declared by the members' code.
"""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import (
    QUEUE,
    Group,
    a_job,
    enqueue,
    finished,
    get,
    noted,
    noted_pids,
    states,
)
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobRecord, NewJob
from tidemill.model.time import Instant

DEPLOYED = "tests.integration.supervisor.deployed:app"
LIMITED = "limited"
SERVES: dict[str, Any] = {"queues": (LIMITED, QUEUE), "slots": 2, "processes": 2}

CROWD_MOST = 30
"""Of the crowd's jobs until the last of the twenty of another has started: a turn for each of them, one more
for each of the four processes, and some that were taken before the twenty could be seen."""


def naps(folder: Path, count: int, seconds: float = 0.03, **options: Any) -> list[NewJob]:
    return [a_job("nap", str(folder), seconds, **{"queue": LIMITED, **options}) for _ in range(count)]


async def two_members(group: StartGroup, **config: Any) -> tuple[Group, Group]:
    members = group("one", **{**SERVES, **config}), group("other", **{**SERVES, **config})
    for member in members:
        await member.ready(2)
    return members


def at_each_claim(jobs: Sequence[JobRecord]) -> dict[Instant, int]:
    """How many were held just after each claim. One that ends in the step of a claim has gone before it."""
    held = {}
    for job in jobs:
        at = job.claimed_at or 0
        held[at] = sum((one.claimed_at or 0) <= at < (one.ended_at or 0) for one in jobs)
    return held


def jobs_end(jobs: Sequence[JobRecord]) -> Instant:
    return max(job.ended_at or 0 for job in jobs)


async def have_declared(engine: Engine, folder: Path, member: Group, *, processes: int) -> None:
    """Wait until so many processes of the member have run something: they declare before they claim."""
    await member.ready(processes)

    def have_run() -> set[int]:
        return set(member.workers) & set(noted_pids(folder, "nap"))

    while len(have_run()) < processes:
        await finished(engine, await enqueue(engine, *naps(folder, 10, queue=QUEUE)))


async def in_force(engine: Engine) -> int | None:
    """The concurrency of the queue."""
    (queue,) = [one for one in await engine.queues.list() if one.name == LIMITED]
    return queue.options.concurrency


@pytest.mark.every_engine
@pytest.mark.row("E1")
@pytest.mark.timeout(120)
async def test_a_limit_is_changed_paused_and_reset_under_load_while_holders_die(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    ids = await enqueue(engine, *naps(tmp_path, 200))
    await engine.queues.override(LIMITED, {"concurrency": 3})
    one, _ = await two_members(group)

    async def more(runs: int) -> None:
        """Until so many more have started."""
        enough = len(noted(tmp_path, "nap")) + runs
        await until(lambda: len(noted(tmp_path, "nap")) >= enough)

    await more(10)
    await engine.queues.override(LIMITED, {"concurrency": 1})
    lowered = await engine.now()
    await more(5)
    raising = await engine.now()
    await engine.queues.override(LIMITED, {"concurrency": 4})
    await more(10)
    ran = set(noted_pids(tmp_path, "nap"))
    os.kill(next(pid for pid in one.workers if pid in ran), signal.SIGKILL)
    await more(10)

    await engine.queues.pause(LIMITED)
    paused = await engine.now()
    await finished(engine, await enqueue(engine, *naps(tmp_path, 20, queue=QUEUE)))  # they claim other jobs
    assert states(await get(engine, ids))["ready"], "there was something to start"
    resuming = await engine.now()
    await engine.queues.resume(LIMITED)

    jobs = await finished(engine, ids)
    assert states(jobs) == {"completed": 200}
    claims = at_each_claim(jobs)
    assert not [at for at in claims if paused < at < resuming]
    for most, since, until_then in ((3, 0, lowered), (1, lowered, raising), (4, raising, jobs_end(jobs))):
        assert max(held for at, held in claims.items() if since < at < until_then) == most


@pytest.mark.timeout(120)
async def test_an_old_member_that_starts_a_process_again_does_not_bring_its_limit_back(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """A deploy: the release of the second member has another limit. Then a third, after an operator."""
    config = {**SERVES, "app": DEPLOYED}
    old = group("old", **config, environment={"LIMITED_TO": "4"})
    await have_declared(engine, tmp_path, old, processes=2)
    assert await in_force(engine) == 4
    new = group("new", **config, environment={"LIMITED_TO": "2"})
    await have_declared(engine, tmp_path, new, processes=2)
    os.kill(old.workers[0], signal.SIGKILL)
    await old.ready(3)
    await have_declared(engine, tmp_path, old, processes=2)
    assert await in_force(engine) == 2
    ids = await enqueue(engine, *naps(tmp_path, 60))
    assert max(at_each_claim(await finished(engine, ids)).values()) == 2

    await engine.queues.override(LIMITED, {"concurrency": 1})
    newest = group("newest", **{**config, "processes": 1}, environment={"LIMITED_TO": "3"})
    await have_declared(engine, tmp_path, newest, processes=1)
    assert await in_force(engine) == 1
    await engine.queues.reset(LIMITED)
    assert await in_force(engine) == 3


@pytest.mark.every_engine
@pytest.mark.row("F4")
@pytest.mark.timeout(120)
async def test_tenants_have_their_limits_and_their_turns(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """One has flooded the queue, and may fill all of it, when two others come with a few jobs."""
    crowd = await enqueue(engine, *naps(tmp_path, 250, 0.01, key="crowd"))
    fields = {"fair_by": "key", "concurrency": 3, "per_key": {"concurrency": 1}}
    own = {"crowd": {"concurrency": 3}, "tin": {"concurrency": 3}}
    await engine.queues.override(LIMITED, {**fields, "limits": own})
    await two_members(group)
    await until(lambda: len(noted(tmp_path, "nap")) > 20)
    few = [*naps(tmp_path, 20, 0.01, key="tin"), *naps(tmp_path, 5, 0.01, key="iron")]
    jobs = await finished(engine, [*crowd, *await enqueue(engine, *few)])
    assert states(jobs) == {"completed": 275}
    of = {key: [job for job in jobs if job.key == key] for key in ("crowd", "tin", "iron")}
    assert max(at_each_claim(jobs).values()) == 3
    assert max(at_each_claim(of["crowd"]).values()) == 3, "its own limit"
    assert max(at_each_claim(of["iron"]).values()) == 1, "that of every other key"
    came, gone = min(job.ready_at or 0 for job in of["tin"]), max(job.claimed_at or 0 for job in of["tin"])
    assert sum(came < (job.claimed_at or 0) < gone for job in of["crowd"]) <= CROWD_MOST
