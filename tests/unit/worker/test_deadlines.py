"""The one sweep."""

import asyncio

from tests.unit.worker.builders import a_run
from tidemill.engine.boot import boot_ns
from tidemill.worker.running.deadlines import Deadlines
from tidemill.worker.running.run import Run


async def test_runs_are_found_when_their_moment_has_come_and_not_before() -> None:
    active: dict[int, Run] = {1: a_run(1), 2: a_run(2), 3: a_run(3)}
    found: list[int] = []
    over = asyncio.Event()

    def due(run: Run, now_ns: int) -> None:
        assert now_ns >= run.due_ns
        found.append(run.fence)
        run.due_ns = 0
        if len(found) == 2:
            over.set()

    deadlines = Deadlines(active, due)
    now_ns = boot_ns()
    active[1].due_ns, active[2].due_ns = now_ns + 40_000_000, now_ns + 5_000_000
    deadlines.wake()
    for run in active.values():
        if run.due_ns:
            deadlines.watch(run.due_ns)
    await over.wait()
    deadlines.stop()
    assert found == [2, 1]


async def test_while_nothing_runs_there_is_no_timer() -> None:
    active: dict[int, Run] = {1: a_run(1)}
    seen = asyncio.Event()

    def due(run: Run, _: int) -> None:
        del active[run.fence]
        seen.set()

    deadlines = Deadlines(active, due)
    assert deadlines.asleep
    active[1].due_ns = boot_ns()
    deadlines.wake()
    deadlines.watch(active[1].due_ns)
    assert not deadlines.asleep
    await seen.wait()
    assert deadlines.asleep
    assert deadlines._timer is None
