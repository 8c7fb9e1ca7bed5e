"""The table of steps, checked against the promises that `JobState` makes in words."""

import itertools

import pytest

from tidemill.model.errors import IllegalTransition
from tidemill.model.jobs.job import FINAL, LIVE, STATES, JobState
from tidemill.model.jobs.lifecycle import (
    STEPS,
    allowed,
    check_step,
    state_after_failure,
    state_after_release,
)

DRAWN = """
new -> blocked scheduled ready
blocked -> ready scheduled cancelled dead
scheduled -> ready scheduled cancelled dead
ready -> running scheduled cancelled dead
running -> completed dead cancelled scheduled blocked ready
completed -> ready gone
dead -> ready gone
cancelled -> ready gone
"""


def drawn_steps() -> set[tuple[JobState | None, JobState | None]]:
    steps: set[tuple[JobState | None, JobState | None]] = set()
    for line in DRAWN.strip().splitlines():
        before, after = line.split(" -> ")
        for word in after.split():
            start = None if before == "new" else JobState(before)
            steps.add((start, None if word == "gone" else JobState(word)))
    return steps


@pytest.mark.row("B1")
@pytest.mark.parametrize(("before", "after"), list(itertools.product((None, *STATES), repeat=2)))
def test_exactly_the_drawn_steps_exist(before: JobState | None, after: JobState | None) -> None:
    exists = (before, after) in drawn_steps()
    assert allowed(before, after) is exists
    if exists:
        check_step(before, after)
    else:
        with pytest.raises(IllegalTransition, match="does not go from"):
            check_step(before, after)


def test_every_state_is_either_live_or_final() -> None:
    assert sorted((*LIVE, *FINAL)) == sorted(STATES)
    assert set(STEPS) == {None, *STATES}


def test_only_finished_jobs_can_go() -> None:
    assert {state for state in STATES if allowed(state, None)} == set(FINAL)


def test_only_ready_jobs_are_claimed_and_only_running_ones_complete() -> None:
    assert [state for state in (None, *STATES) if allowed(state, JobState.RUNNING)] == [JobState.READY]
    assert [state for state in (None, *STATES) if allowed(state, JobState.COMPLETED)] == [JobState.RUNNING]


def test_every_state_is_reached_from_enqueue_and_leads_to_an_end() -> None:
    def reachable(start: JobState | None) -> set[JobState | None]:
        seen: set[JobState | None] = set()
        open_ends = [start]
        while open_ends:
            state = open_ends.pop()
            new = STEPS[state] - seen
            seen |= new
            open_ends += new
        return seen

    assert reachable(None) == {None, *STATES}
    for state in STATES:
        assert {None, *FINAL} <= reachable(state)


@pytest.mark.parametrize(
    ("cancel_requested", "retry", "state"),
    [
        (True, True, JobState.CANCELLED),
        (True, False, JobState.CANCELLED),
        (False, True, JobState.SCHEDULED),
        (False, False, JobState.DEAD),
    ],
)
def test_a_failed_job_that_was_asked_to_stop_is_never_retried(
    cancel_requested: bool, retry: bool, state: JobState
) -> None:
    assert state_after_failure(cancel_requested=cancel_requested, retry=retry) is state


@pytest.mark.parametrize(
    ("cancel_requested", "delayed", "state"),
    [
        (True, True, JobState.CANCELLED),
        (True, False, JobState.CANCELLED),
        (False, True, JobState.SCHEDULED),
        (False, False, JobState.READY),
    ],
)
def test_a_released_job_goes_on_unless_it_was_asked_to_stop(
    cancel_requested: bool, delayed: bool, state: JobState
) -> None:
    assert state_after_release(cancel_requested=cancel_requested, delayed=delayed) is state


def test_whatever_follows_a_run_is_a_step_of_the_table() -> None:
    for first, second in itertools.product((True, False), repeat=2):
        assert allowed(JobState.RUNNING, state_after_failure(cancel_requested=first, retry=second))
        assert allowed(JobState.RUNNING, state_after_release(cancel_requested=first, delayed=second))
