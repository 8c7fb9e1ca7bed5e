"""Blame: which runs of a dead worker process may have caused its death.

The held table shows what the process held at its last instruction. The rules:

- The process was killed because some of its runs were stuck. Those runs have timed out; no run crashed. (A
  stuck run whose code ended at the last moment has not timed out. Its outcome died with the process, so it is
  released.)
- The process ended by its own decision or by ours: no run is to blame.
- Otherwise one of the runs that had really started in it ended it. If one had started, that is proof of a
  crash. If several had, each is a suspect. Runs that only waited, or ran in processes of their own, are
  innocent.

A run that is not named here is released by the engine when the claimant is retired.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.jobs.job import Failure, Fence
from tidemill.model.jobs.run import Failed, LostRun, Settlement
from tidemill.model.names import qualified_name
from tidemill.worker.process.held_table import NO_RETRY, HeldRow


class Blame(NamedTuple):
    """What the engine is sent, in this order: the settlements, then the retirement with the lost runs."""

    settlements: list[Settlement]
    lost_runs: list[LostRun]


def assign_blame(
    rows: Sequence[HeldRow], *, now_ns: int, how: str, innocent: bool, stuck: Collection[Fence]
) -> Blame:
    """`how` the process ended is kept with the blamed runs. `innocent`: no task can have caused the death."""
    timeouts = [_timed_out(row, now_ns) for row in rows if row.fence in stuck and row.started_ns]
    if innocent or timeouts:
        return Blame(timeouts, [])
    # One call can name a thousand at most; the rest is released without a mark.
    started = [row for row in rows if row.started_ns][:BATCH_LIMIT]
    if len(started) == 1:
        return Blame([], [LostRun(id=started[0].id, fence=started[0].fence, verdict="crash", message=how)])
    message = f"{how}, which had {len(started)} jobs"
    return Blame(
        [], [LostRun(id=row.id, fence=row.fence, verdict="suspect", message=message) for row in started]
    )


def _timed_out(row: HeldRow, now_ns: int) -> Settlement:
    ran = (now_ns - row.started_ns) // 1_000
    failure = Failure(
        kind="timeout",
        error=qualified_name(TimeoutError),
        message=f"it did not stop at its timeout; its process was killed after {ran / 1_000_000:.1f} s",
    )
    retry_in = None if row.retry_in == NO_RETRY else row.retry_in
    outcome = Failed(failure=failure, retry_in=retry_in)
    return Settlement(id=row.id, fence=row.fence, outcome=outcome, ran=ran)
