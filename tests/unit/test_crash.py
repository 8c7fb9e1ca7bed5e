"""Poison is isolated, innocents are not punished."""

import itertools

import pytest

from tidemill.model.jobs.crash import CRASH_LIMIT, AfterLostRun, after_claimant_lost, after_member_lost
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.lifecycle import allowed
from tidemill.model.jobs.run import LostRunVerdict

READY, DEAD, CANCELLED = JobState.READY, JobState.DEAD, JobState.CANCELLED


def test_the_first_lost_run_is_forgiven_and_the_second_makes_a_suspect() -> None:
    first = after_member_lost(suspect=False, started=True, lost_runs=0, crashes=0, cancel_requested=False)
    assert first == AfterLostRun(READY, suspect=False, lost_runs=1, crashes=0)
    second = after_member_lost(suspect=False, started=True, lost_runs=1, crashes=0, cancel_requested=False)
    assert second == AfterLostRun(READY, suspect=True, lost_runs=2, crashes=0)


def test_only_a_lost_run_of_a_suspect_that_had_started_is_proof() -> None:
    proof = after_member_lost(suspect=True, started=True, lost_runs=2, crashes=0, cancel_requested=False)
    assert proof == AfterLostRun(READY, suspect=True, lost_runs=3, crashes=1)
    chance = after_member_lost(suspect=True, started=False, lost_runs=2, crashes=0, cancel_requested=False)
    assert chance == AfterLostRun(READY, suspect=True, lost_runs=3, crashes=0)


def test_a_poisonous_job_dies_after_three_proofs_and_never_earlier() -> None:
    suspect, lost_runs, crashes, states = False, 0, 0, []
    for _ in range(5):
        state, suspect, lost_runs, crashes = after_member_lost(
            suspect=suspect, started=True, lost_runs=lost_runs, crashes=crashes, cancel_requested=False
        )
        states.append(state)
    assert states == [READY, READY, READY, READY, DEAD]
    assert crashes == CRASH_LIMIT


@pytest.mark.parametrize(
    ("verdict", "after"),
    [
        (None, AfterLostRun(READY, suspect=False, lost_runs=1, crashes=0)),
        ("suspect", AfterLostRun(READY, suspect=True, lost_runs=1, crashes=0)),
        ("crash", AfterLostRun(READY, suspect=True, lost_runs=1, crashes=1)),
    ],
)
def test_the_supervisor_of_a_dead_child_gives_its_verdict(
    verdict: LostRunVerdict | None, after: AfterLostRun
) -> None:
    assert (
        after_claimant_lost(verdict, suspect=False, lost_runs=1, crashes=0, cancel_requested=False) == after
    )


def test_the_third_proven_crash_is_the_end() -> None:
    last = after_claimant_lost("crash", suspect=True, lost_runs=0, crashes=2, cancel_requested=False)
    assert last == AfterLostRun(DEAD, suspect=True, lost_runs=0, crashes=3)
    beside = after_claimant_lost("suspect", suspect=True, lost_runs=0, crashes=2, cancel_requested=False)
    assert beside == AfterLostRun(READY, suspect=True, lost_runs=0, crashes=2)


def test_a_suspect_stays_one() -> None:
    for verdict in (None, "suspect", "crash"):
        assert after_claimant_lost(
            verdict, suspect=True, lost_runs=0, crashes=0, cancel_requested=False
        ).suspect
    assert after_member_lost(
        suspect=True, started=False, lost_runs=0, crashes=0, cancel_requested=False
    ).suspect


def test_a_lost_job_that_was_asked_to_stop_is_cancelled_whatever_it_did() -> None:
    for crashes, flag in itertools.product((0, 2), (True, False)):
        gone = after_member_lost(
            suspect=flag, started=flag, lost_runs=5, crashes=crashes, cancel_requested=True
        )
        died = after_claimant_lost("crash", suspect=flag, lost_runs=0, crashes=crashes, cancel_requested=True)
        assert gone.state is died.state is CANCELLED


def test_every_end_of_a_lost_run_is_a_step_of_the_table() -> None:
    assert all(allowed(JobState.RUNNING, state) for state in (READY, DEAD, CANCELLED))
