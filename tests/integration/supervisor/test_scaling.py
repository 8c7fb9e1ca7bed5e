"""Worker processes that come and go: by load, and when they are due to be replaced. No job pays for it."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import (
    Group,
    a_job,
    enqueue,
    finished,
    noted,
    noted_pids,
    states,
)
from tests.integration.supervisor.processes import until
from tidemill.engine.protocol import Engine
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import NewJob

DEPLOYED = "tests.integration.supervisor.deployed:app"
SCALES: dict[str, Any] = {
    "processes": 1,
    "processes_most": 4,
    "slots": 1,
    "scale_wait_s": 0.2,
    "scale_calm_s": 1.0,
}


def naps(folder: Path, count: int, **options: str) -> list[NewJob]:
    return [a_job("nap", str(folder), 0.05, **options) for _ in range(count)]


def runs_of(folder: Path, name: str) -> Counter[str]:
    """How often each job ran."""
    return Counter(noted(folder, name))


@contextmanager
def watched(one: Group) -> Iterator[list[int]]:
    """How many worker processes there were, sampled while the block runs."""
    seen: list[int] = []

    async def sample() -> None:
        while True:
            seen.append(len(one.workers))
            await asyncio.sleep(0.02)

    sampling = asyncio.create_task(sample())
    try:
        yield seen
    finally:
        sampling.cancel()


@pytest.mark.row("E6")
@pytest.mark.row("F13")
@pytest.mark.every_engine
async def test_processes_come_when_jobs_wait_and_go_when_none_do(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(**SCALES).ready()
    with watched(one) as seen:
        ids = await enqueue(engine, *naps(tmp_path, 200))
        await one.ready(4)
        assert states(await finished(engine, ids)) == {"completed": 200}
        await until(lambda: len(one.workers) == 1)
    assert max(seen) == 4
    assert set(runs_of(tmp_path, "nap").values()) == {1}
    assert len(set(noted_pids(tmp_path, "nap"))) == 4, "all of them ran some"
    assert await one.stop() == 0


@pytest.mark.row("E6")
@pytest.mark.every_engine
async def test_a_process_killed_while_the_number_grows_costs_no_job(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """The first one dies while the others are loaded, one of them while it works."""
    one = await group(**SCALES, heartbeat_s=0.5, lease_s=30.0).ready()
    first = one.workers[0]
    ids = await enqueue(engine, *naps(tmp_path, 150))
    await until(lambda: len(one.workers) > 1)
    os.kill(first, signal.SIGKILL)
    await until(lambda: len(set(noted_pids(tmp_path, "nap"))) > 2)
    os.kill(next(pid for pid in one.workers if pid in noted_pids(tmp_path, "nap")), signal.SIGKILL)
    assert states(await finished(engine, ids)) == {"completed": 150}
    runs = runs_of(tmp_path, "nap")
    assert len(runs) == 150
    assert sum(runs.values()) <= 152, "one run a killed process"
    await until(lambda: len(one.workers) == 1)
    assert await one.stop() == 0


@pytest.mark.row("E6")
async def test_a_job_that_takes_long_is_not_disturbed_when_the_number_shrinks(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """More jobs than the least number of processes has slots for: those that have one stay until it ends."""
    one = await group(**SCALES).ready()
    ids = await enqueue(engine, *(a_job("wait_for", str(tmp_path), f"go {number}") for number in range(3)))
    await until(lambda: len(noted(tmp_path, "waiting")) == 3)
    (tmp_path / "go 0").touch()
    await finished(engine, ids[:1])
    await until(lambda: "instead of 4" in one.log or "instead of 3" in one.log)
    for number in (1, 2):
        (tmp_path / f"go {number}").touch()
    assert states(await finished(engine, ids)) == {"completed": 3}
    await until(lambda: len(one.workers) == 1)
    assert set(runs_of(tmp_path, "waiting").values()) == {1}
    assert await one.stop() == 0


@pytest.mark.row("E6")
async def test_jobs_that_another_process_could_not_start_start_none(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """They wait for the limit of their queue."""
    one = await group(**SCALES, queues=("narrow",)).ready()
    ids = await enqueue(engine, *naps(tmp_path, 40, queue="narrow"))
    assert states(await finished(engine, ids)) == {"completed": 40}
    assert "instead of" not in one.log, "in twenty polls or more"
    assert await one.stop() == 0


@pytest.mark.row("F13")
@pytest.mark.every_engine
async def test_a_process_is_replaced_after_its_jobs_and_none_is_lost_or_run_twice(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(processes=2, slots=2, recycle_after_jobs=20).ready(2)
    ids: list[JobId] = []
    with watched(one) as seen:
        while len(set(noted_pids(tmp_path, "nap"))) < 4:  # both are replaced
            ids += await enqueue(engine, *naps(tmp_path, 20))
            await finished(engine, ids[-10:])
        assert set(states(await finished(engine, ids))) == {"completed"}
    assert runs_of(tmp_path, "nap") == Counter(show_id(job_id) for job_id in ids)
    assert max(seen) <= 3, "one at a time"
    assert "is replaced: it has finished" in one.log
    assert await one.stop() == 0


@pytest.mark.row("F13")
async def test_a_process_that_leaks_is_replaced_at_its_bound(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(slots=1, recycle_above_mb=160).ready()
    first = one.workers[0]
    ids = await enqueue(engine, *(a_job("leaks", str(tmp_path), 30) for _ in range(6)))
    assert states(await finished(engine, ids)) == {"completed": 6}
    await until(lambda: one.workers and first not in one.workers)
    assert "MiB of memory, more than 160" in one.log
    ids = await enqueue(engine, a_job("leaks", str(tmp_path), 1))
    assert states(await finished(engine, ids)) == {"completed": 1}
    assert set(runs_of(tmp_path, "leaks").values()) == {1}
    assert await one.stop() == 0


@pytest.mark.row("F13")
async def test_a_runner_that_leaks_is_replaced_at_its_bound(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    """It has one job at a time, so its successor starts with the next."""
    one = await group(slots=1, recycle_above_mb=160).ready()
    ids = await enqueue(engine, *(a_job("leaks_in_process", str(tmp_path), size) for size in (1, 150, 1)))
    assert states(await finished(engine, ids)) == {"completed": 3}
    first, second, third = noted_pids(tmp_path, "leaks")
    assert first == second != third
    assert await one.stop() == 0


@pytest.mark.row("F13")
async def test_a_bound_below_what_the_app_itself_needs_is_said_once(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    one = await group(recycle_above_mb=1).ready()
    ids = await enqueue(engine, *naps(tmp_path, 20))
    assert states(await finished(engine, ids)) == {"completed": 20}
    await until(lambda: "Raise --recycle-above-mb" in one.log)
    assert len(set(noted_pids(tmp_path, "nap"))) == 1
    assert await one.stop() == 0


@pytest.mark.row("F13")
async def test_a_successor_that_cannot_be_loaded_leaves_the_old_one_at_work(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    one = await group(app=DEPLOYED, recycle_after_jobs=1, environment={"BROKEN": str(broken)}).ready()
    first = one.workers[0]
    broken.touch()
    for _ in range(2):
        ids = await enqueue(engine, a_job("quick", str(tmp_path)))
        assert states(await finished(engine, ids)) == {"completed": 1}
        await until(lambda: "cannot work" in one.log)
    assert first in one.workers
    broken.unlink()
    await until(lambda: first not in one.workers)
    ids = await enqueue(engine, a_job("quick", str(tmp_path)))
    assert states(await finished(engine, ids)) == {"completed": 1}
    assert await one.stop() == 0
