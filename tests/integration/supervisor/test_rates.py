"""Rates as an API outside sees them: when it was called, by two members of two processes each."""

import asyncio
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import (
    PATIENCE_S,
    a_job,
    enqueue,
    finished,
    noted,
    noted_pids,
    states,
)
from tests.integration.supervisor.rated import BURSTS, SHARED, SMOOTH
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.queues.gate import permits_of
from tidemill.model.queues.queue import Rate
from tidemill.worker.claiming.shares import processes_by_queue

APP = "tests.integration.supervisor.rated:app"
TASKS = "tests.integration.supervisor.rated."


async def work(engine: Engine, group: StartGroup, queue: str, tasks: list[str], folder: Path) -> list[int]:
    """The moments of all calls, in their order, once all jobs have ended."""
    for name in ("one", "other"):
        group(name, app=APP, queues=(queue,), slots=20, processes=2)
    jobs = [a_job("", str(folder), queue=queue) for _ in tasks]
    named = [msgspec.structs.replace(job, task=TASKS + task) for job, task in zip(jobs, tasks, strict=True)]
    ids = await enqueue(engine, *named)
    assert states(await finished(engine, ids)) == {"completed": len(tasks)}
    calls = sorted(map(int, noted(folder, queue)))
    assert len(calls) == len(tasks)
    return calls


def most_in_a_window(calls: list[int], rate: Rate) -> int:
    window_ns = 1_000 * rate.window
    return max(sum(first <= call <= first + window_ns for call in calls) for first in calls)


@pytest.mark.every_engine
@pytest.mark.row("E3")
async def test_no_window_sees_more_calls_than_the_rate(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    tasks = ["call_on_the_loop", "call_in_a_thread"] * 110
    calls = await work(engine, group, "bursts", tasks, tmp_path)
    assert most_in_a_window(calls, BURSTS) <= BURSTS.count


@pytest.mark.row("E3")
async def test_jobs_in_processes_keep_the_rate_too(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    calls = await work(engine, group, "bursts", ["call_in_a_process", "call_on_the_loop"] * 55, tmp_path)
    assert most_in_a_window(calls, BURSTS) <= BURSTS.count


@pytest.mark.every_engine
@pytest.mark.row("E1")
async def test_a_smooth_rate_is_called_evenly(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    calls = await work(engine, group, "smooth", ["send"] * 40, tmp_path)
    assert most_in_a_window(calls, SMOOTH) <= SMOOTH.count
    span_ns = 1_000 * permits_of(SMOOTH).span
    gaps = [after - before for before, after in pairwise(calls)]
    print(f"gaps between {min(gaps) / 1e6:.1f} and {max(gaps) / 1e6:.1f} ms, of {span_ns / 1e6:.1f}")
    assert most_in_a_window(calls, Rate(1, per=4 * span_ns / 1e9)) <= 6, "4 or 5, and one that was held up"


@pytest.mark.row("C7")
async def test_equal_processes_get_equal_shares_of_a_limited_queue(
    engine: Engine, group: StartGroup, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        await group(name, app=APP, queues=(SHARED,), slots=5, processes=2).ready(2)

    give_up_at = time.monotonic() + PATIENCE_S
    while processes_by_queue(await engine.members.list())[SHARED] < 4:
        assert time.monotonic() < give_up_at, "its heartbeats do not name four processes"
        await asyncio.sleep(0.05)
    job = msgspec.structs.replace(a_job("", str(tmp_path), queue=SHARED), task=TASKS + "take_a_while")
    ids = await enqueue(engine, *[msgspec.structs.replace(job, id=new_id()) for _ in range(200)])
    assert states(await finished(engine, ids)) == {"completed": 200}
    shares = Counter(noted_pids(tmp_path, SHARED))
    assert len(shares) == 4
    assert min(shares.values()) >= 25, shares
