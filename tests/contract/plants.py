"""Planted bugs: each patches the SQLite engine as a mistake would have written it (see `planting`)."""

from typing import Any

import pytest

from penstock.engine.statements import Statements
from penstock.engines.sqlite import (
    beats,
    claim,
    commands,
    completions,
    gates,
    lanes,
    losses,
    moves,
    promote,
    ripple,
    settle,
    transactions,
    writer,
)
from penstock.engines.sqlite.step import Step
from penstock.model.job import JobState
from penstock.model.run import Answer
from tests.contract.planting import Plants, replaced

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, statements: Statements, name: str, old: str, new: str) -> None:
    patch.setattr(statements, name, replaced(getattr(statements, name), old, new, where=name))


@plant("settle")
def settle_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        settle, "judge", lambda job, fence: Answer.APPLIED if job and job.state == 3 else Answer.STALE
    )
    patch.setattr(completions, "complete", lambda *_: False)


@plant("settle", "lifecycle")
def plain_completion_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, completions.SQL, "runs_plainly", "ahead = ?3", "?3 > 0")


@plant("settle", "lost_reply")
def settle_answers_applied_twice(patch: pytest.MonkeyPatch) -> None:
    right = settle.judge
    patch.setattr(
        settle,
        "judge",
        lambda job, fence: Answer.APPLIED if right(job, fence) is Answer.ALREADY else right(job, fence),
    )


@plant("crash")
def reclaim_sends_to_the_back(patch: pytest.MonkeyPatch) -> None:
    right = moves.to_ready
    patch.setattr(moves, "to_ready", lambda step, job, *, keep_seq: right(step, job, keep_seq=False))


@plant("promote")
def promote_takes_ready_jobs_again(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, promote.SQL, "forget_due", "WHERE", "WHERE 0 AND")


@plant("gates")
def permits_are_not_freed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gates, "reopen", lambda step, runs: None)


@plant("gates", "rates")
def starts_are_not_logged(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, gates.SQL, "log_starts", "count + excluded.count", "count")


@plant("claim_numbers", "lost_reply")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    right = claim._admit
    patch.setattr(claim, "_admit", lambda step, request: (right(step, request)[0], None))


@plant("settle")
def failures_use_no_attempt(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, settle.SQL, "use_attempt", "attempts + 1", "attempts + 0")


@plant("settle", "cancel")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    def wrong(*, cancel_asked: bool, retry: bool) -> JobState:
        return JobState.SCHEDULED if retry else JobState.DEAD

    patch.setattr(settle, "state_after_failure", wrong)


@plant("lanes")
def priorities_are_not_strict(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, lanes.SQL, "look_plain", "min(priority)", "max(priority)")
    rewrite(patch, lanes.SQL, "next_priority", "min(priority)", "max(priority)")
    rewrite(patch, lanes.SQL, "next_priority", "priority > ?", "(? < 0 OR priority < 0)")


@plant("counts")
def cancelled_jobs_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    right = Step.move

    def wrong(self: Step, queue: int, before: int | None, after: int | None, count: int = 1) -> None:
        if after != 6:
            right(self, queue, before, after, count)

    patch.setattr(Step, "move", wrong)


@plant("prune", "settle", "lost_reply")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, moves.SQL, "bury", "form = 2,", "form = 2, fence = NULL,")


@plant("members")
def beats_give_nothing_back(patch: pytest.MonkeyPatch) -> None:
    right = beats._compare
    patch.setattr(beats, "_compare", lambda step, told, give_back: right(step, told, lambda *_: None))


@plant("crash")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(losses, "may_sweep", lambda *_: True)


@plant("retire", "crash")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, claim.SQL, "admit", "claimant.retired_at", "NULL")


@plant("replay", "lost_reply")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, commands.SQL, "count_replay", "VALUES (?, 1, ?)", "VALUES (?, 1, zeroblob(length(?)))")


@plant("children")
def children_are_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ripple, "tell", lambda step, limit: 0)


@plant("bad_input")
def refusals_are_not_undone(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, calls: list[Any], *, alone: bool = False) -> list[Any]:
        step = Step(self._db, self._catalogue, calls[0].now)
        for call in calls:
            try:
                call.answer = call.work(step)
            except Exception as error:
                call.error = error
        return step.finish()

    patch.setattr(writer.Writer, "_apply", wrong)


@plant("transactions_complete")
def completing_in_a_transaction_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transactions, "judge", lambda state, *_: Answer.APPLIED if state == 3 else Answer.ALREADY)


@plant("transactions_complete")
def completing_in_a_transaction_frees_no_permit(patch: pytest.MonkeyPatch) -> None:
    ending = tuple(text for text in transactions._ENDING if text != transactions.SQL.unpark)
    assert len(ending) == len(transactions._ENDING) - 1
    patch.setattr(transactions, "_ENDING", ending)


@plant("transactions_complete")
def completing_in_a_transaction_leaves_the_run(patch: pytest.MonkeyPatch) -> None:
    ending = tuple(text for text in transactions._ENDING if text != transactions.SQL.shorten_run)
    assert len(ending) == len(transactions._ENDING) - 1
    patch.setattr(transactions, "_ENDING", ending)
