"""The only authority on how a job moves.

```
enqueue   -> blocked | scheduled | ready
blocked   -> ready | scheduled (parents done)          -> cancelled | dead (expired)
scheduled -> ready (due)  -> scheduled (replace)       -> cancelled | dead (expired)
ready     -> running (claim)                           -> cancelled | dead (expired)
          -> scheduled (replaced by a call with a later time)
running   -> completed | dead | cancelled
          -> scheduled (retry, release with a delay)
          -> blocked   (waits for an event or for children)
          -> ready     (release, retire, reclaim)
completed | dead | cancelled -> ready (replay)         -> gone (drop, prune)
```

Everything else is refused. Engines enforce this table inside the atomic step that makes the change.
"""

from collections.abc import Mapping

from tidemill.model.errors import IllegalTransition
from tidemill.model.jobs.job import JobState

B, S, R, X = JobState.BLOCKED, JobState.SCHEDULED, JobState.READY, JobState.RUNNING
C, D, K = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED

STEPS: Mapping[JobState | None, frozenset[JobState | None]] = {
    None: frozenset({B, S, R}),
    B: frozenset({R, S, K, D}),
    S: frozenset({R, S, K, D}),
    R: frozenset({X, S, K, D}),
    X: frozenset({C, D, K, S, B, R}),
    C: frozenset({R, None}),
    D: frozenset({R, None}),
    K: frozenset({R, None}),
}
"""From a state to the states that may follow; None is "not there": before enqueue, after drop."""


def allowed(before: JobState | None, after: JobState | None) -> bool:
    """Whether a job may go from `before` to `after` in one step."""
    return after in STEPS[before]


def check_step(before: JobState | None, after: JobState | None) -> None:
    """Refuse a step that does not exist."""
    if not allowed(before, after):
        raise IllegalTransition(f"a job does not go from {before or 'nothing'} to {after or 'gone'}")


def state_after_failure(*, cancel_requested: bool, retry: bool) -> JobState:
    """Where a failed attempt leads: a job that was asked to stop is never retried."""
    if cancel_requested:
        return K
    return S if retry else D


def state_after_release(*, cancel_requested: bool, delayed: bool) -> JobState:
    """Where a released job goes."""
    if cancel_requested:
        return K
    return S if delayed else R
