"""Poison is isolated, innocents are not punished: what a lost run says about its job.

A claimant (one child process) that dies takes all its runs with it, but only one of them killed it.
The supervisor knows which had really started:

- none or unknown: released, as if nothing had happened;
- exactly one: the proof of a crash;
- several: each becomes a *suspect* and runs next in a process of its own, where a crash is proof.

A member that vanishes as a whole (host gone, out-of-memory kill) leaves no witness. The first lost run
is forgiven; the second makes a suspect. A suspect's start is written to the engine before it runs, so
that its next lost run is proof again. Three proven crashes end the job: dead, "crashed its worker".
"""

from typing import NamedTuple

from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import LostRunVerdict

CRASH_LIMIT = 3
LOST_RUNS_UNTIL_SUSPECT = 2


class AfterLostRun(NamedTuple):
    """What a job is after its run was lost."""

    state: JobState
    suspect: bool
    lost_runs: int
    crashes: int


def after_member_lost(
    *, suspect: bool, started: bool, lost_runs: int, crashes: int, cancel_requested: bool
) -> AfterLostRun:
    """The whole member vanished. `started`: a start was written for this run."""
    lost_runs += 1
    crashes += suspect and started
    return AfterLostRun(
        _state(crashes, cancel_requested), suspect or lost_runs >= LOST_RUNS_UNTIL_SUSPECT, lost_runs, crashes
    )


def after_claimant_lost(
    verdict: LostRunVerdict | None, *, suspect: bool, lost_runs: int, crashes: int, cancel_requested: bool
) -> AfterLostRun:
    """One child died under a living supervisor, which gives its verdict (None: had not started)."""
    crashes += verdict == "crash"
    return AfterLostRun(_state(crashes, cancel_requested), suspect or verdict is not None, lost_runs, crashes)


def _state(crashes: int, cancel_requested: bool) -> JobState:
    if cancel_requested:
        return JobState.CANCELLED
    return JobState.DEAD if crashes >= CRASH_LIMIT else JobState.READY
