"""Runs under a rate wait for their moment."""

import asyncio
from typing import cast

from tidemill.engine.boot import boot_ns
from tidemill.worker.running.run import Run
from tidemill.worker.running.start_times import StartTimes


class Due:
    """Stands in for a run."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns


async def test_runs_begin_in_the_order_of_their_moments_and_never_before() -> None:
    starts, begun, all_begun = StartTimes(), list[tuple[int, int]](), asyncio.Event()
    now_ns = boot_ns()
    moments = [now_ns + ms * 1_000_000 for ms in (30, 10, 10, 20)]

    def begin(run: Run) -> None:
        begun.append((run.start_ns, boot_ns()))
        if len(begun) == len(moments):
            all_begun.set()

    for start_ns in moments:
        starts.begin(cast("Run", Due(start_ns)), begin)
    await asyncio.wait_for(all_begun.wait(), 30)
    assert [start_ns for start_ns, _ in begun] == sorted(moments)
    assert all(start_ns <= at_ns for start_ns, at_ns in begun)


async def test_what_is_due_begins_at_once_unless_others_wait() -> None:
    starts, begun, both = StartTimes(), list[int](), asyncio.Event()

    def begin(run: Run) -> None:
        begun.append(run.start_ns)
        if len(begun) == 3:
            both.set()

    starts.begin(cast("Run", Due(1)), begin)
    assert begun == [1]
    later = boot_ns() + 5_000_000
    starts.begin(cast("Run", Due(later)), begin)
    starts.begin(cast("Run", Due(2)), begin)
    await asyncio.wait_for(both.wait(), 30)
    assert begun == [1, 2, later]
