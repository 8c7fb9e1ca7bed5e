"""Rates as an API outside sees them: when it was called, by two members of two processes each."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import a_job, enqueue, finished, noted, states
from tests.integration.supervisor.rated import BURSTS, SMOOTH
from tidemill.engine.protocol import Engine
from tidemill.model.queues.gate import permits_of
from tidemill.model.queues.queue import Rate

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
    tasks = ["call_on_the_loop", "call_in_a_thread"] * 90
    calls = await work(engine, group, "bursts", tasks, tmp_path)
    assert most_in_a_window(calls, BURSTS) <= BURSTS.count


@pytest.mark.row("E3")
async def test_jobs_in_processes_keep_the_rate_too(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    calls = await work(engine, group, "bursts", ["call_in_a_process", "call_on_the_loop"] * 45, tmp_path)
    assert most_in_a_window(calls, BURSTS) <= BURSTS.count


@pytest.mark.every_engine
@pytest.mark.row("E1")
async def test_a_smooth_rate_is_called_evenly(engine: Engine, group: StartGroup, tmp_path: Path) -> None:
    calls = await work(engine, group, "smooth", ["send"] * 40, tmp_path)
    assert most_in_a_window(calls, SMOOTH) <= SMOOTH.count
    span_ns = 1_000 * permits_of(SMOOTH).span
    gaps = [after - before for before, after in pairwise(calls)]
    print(f"gaps between {min(gaps) / 1e6:.1f} and {max(gaps) / 1e6:.1f} ms, of {span_ns / 1e6:.1f}")
    assert min(gaps) >= span_ns / 2
