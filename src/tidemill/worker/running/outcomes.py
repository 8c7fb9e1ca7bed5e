"""Normalise: from what a function did to the outcome that goes to the engine.

A function that returns has completed, whatever was requested of it meanwhile. One that raises has failed,
unless the exception is the effect of our own abort: `Aborted`, or whatever came out after we threw
CancelledError into it. Then the reason of the abort decides. `Snooze` is no failure, and `RetryAfter` one
that says itself when to try again. A CancelledError that we did not cause is a failure like any other, and so
are SystemExit, KeyboardInterrupt and the rest of BaseException: a task cannot end its worker by raising.
"""

from asyncio import CancelledError
from enum import Enum
from typing import NamedTuple, TypeAlias

from tidemill.model.errors import UNSTORABLE, SnoozesUsedUp
from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.run import Completed, Failed, Outcome, Stopped
from tidemill.model.time import Span
from tidemill.task.current import Abort, Aborted
from tidemill.task.failures import failure_of, lineage
from tidemill.task.later import RetryAfter, Snooze
from tidemill.worker.process.held_table import NO_RETRY
from tidemill.worker.running.run import Run
from tidemill.worker.running.task_rules import timeout_failure


class Instead(Enum):
    """What happens to a run that has no outcome."""

    RELEASE = "release"
    """Released without using an attempt."""
    DROP = "drop"
    """Its job belongs to another run: nothing is sent about it."""
    LATE = "late"
    """It came too late for the permit of its rate: released, and has not run."""


class SnoozedRun(NamedTuple):
    """It asked for a later time: released for this long, without using an attempt."""

    delay: Span


Ending: TypeAlias = Outcome | Instead | SnoozedRun

NOTHING = Completed()
"""Most tasks return None: one record serves them all."""


def returned(run: Run, value: object) -> Completed:
    """The function returned. This raises if the result cannot be stored; `raised` makes a dead job of that. A
    function that called `complete` has given its result there."""
    if run.running.completing:
        return NOTHING
    result = run.rules.encode_result(value)
    return NOTHING if result is None else Completed(result=result)


def raised(run: Run, error: BaseException) -> Ending:
    """The function raised, or its result cannot be stored."""
    if isinstance(error, UNSTORABLE):  # first: a late run that has done its work is not tried again either
        return refused_payload(error)
    reason = run.running.aborted
    if reason is not None and _is_effect(run, error, reason):
        return aborted(run, reason, failure_of(error).traceback)
    if isinstance(error, Snooze):
        return snoozed(run, error.delay)
    if isinstance(error, RetryAfter):
        return retried_after(run, failure_of(error), error.delay)
    return failed(run, error)


def aborted(run: Run, reason: Abort, where: str = "") -> Ending:
    """It stopped because we stopped it."""
    match reason:
        case Abort.CANCEL:
            return Stopped()
        case Abort.TIMEOUT:
            timeout = run.job.timeout or run.rules.timeout or 0
            retry_in = None if run.retry_in == NO_RETRY else run.retry_in
            return Failed(failure=timeout_failure(timeout, where), retry_in=retry_in)
        case Abort.DRAIN:
            return Instead.RELEASE
        case Abort.LOST:
            return Instead.DROP


def failed(run: Run, error: BaseException) -> Failed:
    """An ordinary failure: tried again by policy."""
    return Failed(failure=failure_of(error), retry_in=run.rules.retry_in(run.job, lineage(error)))


def retried_after(run: Run, failure: Failure, delay: Span) -> Failed:
    """It failed, and said when to try again."""
    return Failed(failure=failure, retry_in=run.rules.retry_after(run.job, delay))


def snoozed(run: Run, delay: Span) -> Ending:
    """It asked for a later time; that is a failure if it has done so too often."""
    most = run.rules.snoozes(run.job)
    if run.job.snoozes < most:
        return SnoozedRun(delay)
    error = SnoozesUsedUp(
        f"it raised Snooze, and has snoozed {run.job.snoozes} times already: Retry(snoozes={most}) allows no "
        "more"
    )
    return failed(run, error)


def refused_payload(error: Exception) -> Failed:
    """Its arguments cannot be read, or its result cannot be stored: no attempt would change that."""
    return Failed(failure=failure_of(error, "payload"), retry_in=None)


def _is_effect(run: Run, error: BaseException, reason: Abort) -> bool:
    """Whether our abort caused this exception. After CancelledError code may raise anything while it
    cleans up. (A job that was cancelled on request keeps such an error: it will not run again.)"""
    if isinstance(error, Aborted):
        return True
    return run.cancelled and (isinstance(error, CancelledError) or reason is not Abort.CANCEL)
