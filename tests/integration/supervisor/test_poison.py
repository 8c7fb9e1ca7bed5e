"""Jobs that take their process with them: isolated, and nobody else is punished."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.supervisor.app import MEMORY_GROUP
from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import TASKS, a_job, enqueue, finished, get, noted, states
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.ids import handler_id
from tidemill.model.jobs.job import FINAL, JobState

CRASHES = ("exit", "exit 0", "segfault", "abort", "kill", "memory")

SLOTS = 100
CRASHES_ALONE = 3
"""Proven ones; the first time it was one of many, which is no proof."""

pytestmark = pytest.mark.row("A4")


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    if MEMORY_GROUP.exists():
        MEMORY_GROUP.rmdir()


@pytest.mark.parametrize("run_again", [SLOTS - 1, pytest.param(9, marks=pytest.mark.every_engine)])
@pytest.mark.timeout(300)
async def test_one_poison_among_a_hundred(
    engine: Engine, group: StartGroup, tmp_path: Path, run_again: int
) -> None:
    """All slots run when it strikes: 99 others are suspects, 1 job dies, the others complete.

    Suspects run one at a time, each in a process of its own: 99 of them cost half a minute of processor time,
    so on SQLite only. On every engine 9 run again; the others are cancelled while they wait as suspects."""
    one = await group(slots=SLOTS).ready()
    ids = await enqueue(engine, *[a_job("wait_for", str(tmp_path), "go") for _ in range(SLOTS - 1)])
    await until(lambda: len(noted(tmp_path, "waiting")) == SLOTS - 1)
    (poison,) = await enqueue(engine, a_job("poison", str(tmp_path), "segfault"))
    await until(lambda: any(f"{blamed} blamed" in one.log for blamed in (SLOTS - 1, SLOTS)))
    jobs = await get(engine, ids)
    while not all(job.suspect for job in jobs):  # the supervisor says whom it blames, and then stores it
        await asyncio.sleep(0.01)
        jobs = await get(engine, ids)
    assert {(job.crashes, job.state in FINAL) for job in jobs} == {(0, False)}
    await engine.jobs.cancel(ids[run_again:])
    (tmp_path / "go").touch()
    (dead,) = await finished(engine, [poison], patience_s=240)
    assert (dead.state, dead.crashes, dead.suspect) == (JobState.DEAD, 3, True)
    assert len(noted(tmp_path, "poison")) == 1 + CRASHES_ALONE
    jobs = await finished(engine, ids, patience_s=240)
    assert states(jobs[:run_again]) == {"completed": run_again}
    assert {(job.attempts, job.crashes) for job in jobs[:run_again]} == {(1, 0)}
    assert states(jobs[run_again:]) == Counter(cancelled=len(jobs) - run_again)
    assert one.log.count("is gone") == 1, "one worker process died, and no other"


@pytest.mark.parametrize("kind", CRASHES)
async def test_every_way_to_crash_ends_as_one_dead_letter(
    engine: Engine, group: StartGroup, tmp_path: Path, kind: str
) -> None:
    await group(slots=5).ready()
    good = await enqueue(engine, *[a_job("nap", str(tmp_path), 0.3) for _ in range(2)])
    (poison,) = await enqueue(engine, a_job("poison", str(tmp_path), kind))
    (dead,) = await finished(engine, [poison])
    assert (dead.state, dead.crashes) == (JobState.DEAD, 3)
    assert dead.error is not None
    assert dead.error.kind == "crash"
    assert states(await finished(engine, good)) == {"completed": 2}


@pytest.mark.row("D7")
async def test_the_death_of_one_that_crashed_is_handled(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    await group(slots=5, queues=("default", "graves")).ready()
    (poison,) = await enqueue(engine, a_job("poison", str(tmp_path), "kill", on_dead=f"{TASKS}bury"))
    (dead,) = await finished(engine, [poison])
    (handled,) = await finished(engine, [handler_id(poison, 0)])  # it came with the death
    assert (dead.state, handled.state, handled.queue) == (JobState.DEAD, JobState.COMPLETED, "graves")
    assert len(noted(tmp_path, "buried crash 3")) == 1


@pytest.mark.parametrize("kind", ["exit 0", "segfault", "memory"])
async def test_a_crash_in_a_process_of_its_own_is_proof(
    engine: Engine, group: StartGroup, tmp_path: Path, kind: str
) -> None:
    """And costs the worker process nothing."""
    one = await group(slots=5).ready()
    beside = await enqueue(engine, a_job("wait_for", str(tmp_path), "go"))
    (poison,) = await enqueue(engine, a_job("poison_in_process", str(tmp_path), kind))
    (dead,) = await finished(engine, [poison])
    (tmp_path / "go").touch()
    assert (dead.state, dead.crashes, dead.attempts) == (JobState.DEAD, 3, 0)
    assert len(noted(tmp_path, "poison")) == 3
    (job,) = await finished(engine, beside)
    assert (job.state, job.suspect, job.failure_count) == (JobState.COMPLETED, False, 0)
    assert one.log.count("is ready") == 1


async def test_memory_that_runs_out_in_a_process_is_a_failure_like_others(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    await group(slots=2).ready()
    ids = await enqueue(engine, a_job("eats_memory", str(tmp_path), attempts=1))
    (job,) = await finished(engine, ids)
    assert (job.state, job.attempts, job.crashes) == (JobState.DEAD, 1, 0)
    assert job.error is not None
    assert job.error.error == "MemoryError"
