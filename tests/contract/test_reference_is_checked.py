"""The reference is held to account: a planted error in it is found, and it imports nothing but the model."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import Phase

from tidemill.model.errors import ClaimOutOfOrder
from tidemill.model.jobs.crash import AfterLostRun
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, ClaimRequest, Failed, Settlement
from tidemill.model.time import Instant
from tidemill.testing.contract import reference
from tidemill.testing.contract.reference import gates, members
from tidemill.testing.contract.reference.claims import ReferenceClaims
from tidemill.testing.contract.reference.gates import Room
from tidemill.testing.contract.reference.jobs import ReferenceJobs
from tidemill.testing.contract.reference.records import Gate, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore
from tidemill.testing.contract.stateful.stateful import RandomCommands, run_commands


def test_the_reference_imports_only_the_model() -> None:
    allowed = ("tidemill.model", reference.__name__)
    for path in Path(reference.__file__ or "").parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            ours = [name for name in names if name.startswith("tidemill")]
            assert all(name.startswith(allowed) for name in ours), f"{path.name} imports {ours}"


def release_goes_to_the_back(patch: pytest.MonkeyPatch) -> None:
    right = ReferenceStore.release_run

    def wrong(
        self: ReferenceStore,
        job: ReferenceJob,
        now: Instant,
        *,
        due_at: Instant | None = None,
        reason: str | None = None,
    ) -> None:
        right(self, job, now, due_at=due_at, reason=reason)
        job.position = self.next_position()

    patch.setattr(ReferenceStore, "release_run", wrong)


def a_failed_attempt_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    right = ReferenceJobs._fail

    def wrong(self: ReferenceJobs, job: ReferenceJob, failed: Failed, now: Instant) -> None:
        right(self, job, failed, now)
        job.attempts -= 1

    patch.setattr(ReferenceJobs, "_fail", wrong)


def a_repeated_settle_is_stale(patch: pytest.MonkeyPatch) -> None:
    right = ReferenceJobs._settle

    def wrong(self: ReferenceJobs, settlement: Settlement, now: Instant) -> Answer:
        answer = right(self, settlement, now)
        return Answer.STALE if answer is Answer.ALREADY else answer

    patch.setattr(ReferenceJobs, "_settle", wrong)


def a_gate_admits_one_more(patch: pytest.MonkeyPatch) -> None:
    right = gates.room

    def wrong(store: ReferenceStore, gate: Gate, now: Instant) -> Room:
        room = right(store, gate, now)
        return Room(room.sure + 1, room.most + 1)

    patch.setattr(gates, "room", wrong)


def a_rate_permit_is_returned(patch: pytest.MonkeyPatch) -> None:
    right = ReferenceStore.end

    def wrong(self: ReferenceStore, job: ReferenceJob, state: JobState, now: Instant) -> None:
        right(self, job, state, now)
        for log in self.queues[job.queue].logs.values():
            log.since = log.since[:-1]

    patch.setattr(ReferenceStore, "end", wrong)


def a_lost_job_is_never_suspected(patch: pytest.MonkeyPatch) -> None:
    def wrong(verdict: object, **known: Any) -> AfterLostRun:
        state = JobState.CANCELLED if known["cancel_requested"] else JobState.READY
        return AfterLostRun(state, suspect=False, lost_runs=known["lost_runs"], crashes=known["crashes"])

    patch.setattr(members, "after_claimant_lost", wrong)


def a_child_outlives_its_parent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceStore, "parent_died", lambda self, child, now: None)


def an_older_number_is_answered(patch: pytest.MonkeyPatch) -> None:
    right = ReferenceClaims._reasons

    def wrong(self: ReferenceClaims, request: ClaimRequest, now: Instant) -> tuple[set[Any], set[Any]]:
        sure, possible = right(self, request, now)
        return sure - {ClaimOutOfOrder}, possible

    patch.setattr(ReferenceClaims, "_reasons", wrong)


PLANTED = [
    (release_goes_to_the_back, "order of"),
    (a_failed_attempt_is_not_counted, "attempts is"),
    (a_repeated_settle_is_stale, "settle answered already, should be stale"),
    (a_gate_admits_one_more, "was left|it was the turn of|goes before|facts are wrong"),
    (a_rate_permit_is_returned, "was left|it was the turn of|goes before|but wait is|facts are wrong"),
    (a_lost_job_is_never_suspected, "suspect is True, should be False"),
    (a_child_outlives_its_parent, "state is <JobState.CANCELLED"),
    (an_older_number_is_answered, "refused without reason: ClaimOutOfOrder"),
]


COMMANDS, MOST = 401, 300
"""With these commands each of the errors is found within a dozen turns; with most others some take hundreds.
Another Hypothesis may make other commands of the number: then it takes longer."""


def search(**instead: Any) -> None:
    """Always the same commands, on engines in memory."""
    run_commands(
        RandomCommands,
        lambda: f"sqlite://?name={uuid4().hex}",
        number=COMMANDS,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,  # the first difference is enough
        **instead,
    )


def test_without_a_planted_error_nothing_is_found() -> None:
    search(max_examples=15)


@pytest.mark.parametrize(("plant", "finding"), PLANTED)
def test_a_planted_error_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=finding):
        search(max_examples=MOST)
