"""Poison is isolated, innocents are not punished."""

import itertools

import pytest

from tidemill.model.jobs.crash import CRASH_LIMIT, AfterLoss, after_claimant_lost, after_member_lost
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.lifecycle import allowed
from tidemill.model.jobs.run import LossVerdict

READY, DEAD, CANCELLED = JobState.READY, JobState.DEAD, JobState.CANCELLED


def test_the_first_loss_is_forgiven_and_the_second_makes_a_suspect() -> None:
    first = after_member_lost(suspect=False, started=True, losses=0, crashes=0, cancel_requested=False)
    assert first == AfterLoss(READY, suspect=False, losses=1, crashes=0)
    second = after_member_lost(suspect=False, started=True, losses=1, crashes=0, cancel_requested=False)
    assert second == AfterLoss(READY, suspect=True, losses=2, crashes=0)


def test_only_the_loss_of_a_suspect_that_had_started_is_proof() -> None:
    proof = after_member_lost(suspect=True, started=True, losses=2, crashes=0, cancel_requested=False)
    assert proof == AfterLoss(READY, suspect=True, losses=3, crashes=1)
    chance = after_member_lost(suspect=True, started=False, losses=2, crashes=0, cancel_requested=False)
    assert chance == AfterLoss(READY, suspect=True, losses=3, crashes=0)


def test_a_poisonous_job_dies_after_three_proofs_and_never_earlier() -> None:
    suspect, losses, crashes, states = False, 0, 0, []
    for _ in range(5):
        state, suspect, losses, crashes = after_member_lost(
            suspect=suspect, started=True, losses=losses, crashes=crashes, cancel_requested=False
        )
        states.append(state)
    assert states == [READY, READY, READY, READY, DEAD]
    assert crashes == CRASH_LIMIT


@pytest.mark.parametrize(
    ("verdict", "after"),
    [
        (None, AfterLoss(READY, suspect=False, losses=1, crashes=0)),
        ("suspect", AfterLoss(READY, suspect=True, losses=1, crashes=0)),
        ("crash", AfterLoss(READY, suspect=True, losses=1, crashes=1)),
    ],
)
def test_the_supervisor_of_a_dead_child_gives_its_verdict(
    verdict: LossVerdict | None, after: AfterLoss
) -> None:
    assert after_claimant_lost(verdict, suspect=False, losses=1, crashes=0, cancel_requested=False) == after


def test_the_third_proven_crash_is_the_end() -> None:
    last = after_claimant_lost("crash", suspect=True, losses=0, crashes=2, cancel_requested=False)
    assert last == AfterLoss(DEAD, suspect=True, losses=0, crashes=3)
    beside = after_claimant_lost("suspect", suspect=True, losses=0, crashes=2, cancel_requested=False)
    assert beside == AfterLoss(READY, suspect=True, losses=0, crashes=2)


def test_a_suspect_stays_one() -> None:
    for verdict in (None, "suspect", "crash"):
        assert after_claimant_lost(verdict, suspect=True, losses=0, crashes=0, cancel_requested=False).suspect
    assert after_member_lost(suspect=True, started=False, losses=0, crashes=0, cancel_requested=False).suspect


def test_a_lost_job_that_was_asked_to_stop_is_cancelled_whatever_it_did() -> None:
    for crashes, flag in itertools.product((0, 2), (True, False)):
        gone = after_member_lost(suspect=flag, started=flag, losses=5, crashes=crashes, cancel_requested=True)
        died = after_claimant_lost("crash", suspect=flag, losses=0, crashes=crashes, cancel_requested=True)
        assert gone.state is died.state is CANCELLED


def test_every_end_of_a_lost_run_is_a_step_of_the_table() -> None:
    assert all(allowed(JobState.RUNNING, state) for state in (READY, DEAD, CANCELLED))
