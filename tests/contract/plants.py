"""Planted bugs: each patches the SQLite engine as a mistake would have written it (see `planting`)."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest

from tests.contract.planting import Plants
from tests.rewriting import in_statement
from tidemill.engine.protocol import Fired
from tidemill.engine.shared.statements import Statements
from tidemill.engines.sqlite import transactions
from tidemill.engines.sqlite.claiming import aside, choice, claim
from tidemill.engines.sqlite.cluster import heartbeat, schedules
from tidemill.engines.sqlite.db import writer
from tidemill.engines.sqlite.jobs import (
    commands,
    dependents,
    enqueue,
    lost_runs,
    on_dead,
    plain_settle,
    promote,
    settle,
    transitions,
)
from tidemill.engines.sqlite.jobs.step import READY, RUNNING, Step
from tidemill.engines.sqlite.order import gates, lanes
from tidemill.engines.sqlite.unique import keys
from tidemill.model.jobs.job import JobState, Stored
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import Answer

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, statements: Statements, name: str, old: str, new: str) -> None:
    in_statement(patch.setattr, statements, name, old, new)


@plant("settle::test_only_the_holder_settles")
def settle_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        settle, "judge", lambda job, fence: Answer.APPLIED if job and job.state == 3 else Answer.STALE
    )
    patch.setattr(plain_settle, "complete", lambda *_: False)


@plant("settle::test_a_batch_that_only_has_wrong_fences_is_stale")
def plain_completion_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, plain_settle.SQL, "runs_plainly", "ahead = ?3", "?3 > 0")


@plant("settle::test_a_repeated_settle_is_told_from_a_zombie")
def settle_answers_applied_twice(patch: pytest.MonkeyPatch) -> None:
    right = settle.judge
    patch.setattr(
        settle,
        "judge",
        lambda job, fence: Answer.APPLIED if right(job, fence) is Answer.ALREADY else right(job, fence),
    )


@plant("crash::test_the_jobs_of_a_gone_member_come_back")
def reclaim_sends_to_the_back(patch: pytest.MonkeyPatch) -> None:
    right = transitions.to_ready
    patch.setattr(transitions, "to_ready", lambda step, job, *, keep_seq: right(step, job, keep_seq=False))


@plant("promote::test_due_jobs_stand_in_the_order_of_their_due_times")
def promote_takes_ready_jobs_again(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, promote.SQL, "forget_due", "WHERE", "WHERE 0 AND")


@plant("gates::test_a_queue_runs_no_more_than_allowed")
def permits_are_not_freed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gates, "reopen", lambda step, runs: None)


@plant("rates::test_starts_keep_the_rate_though_each_run_is_late_by_another_time")
def runs_start_as_soon_as_they_can(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gates, "pressed", lambda *_: False)


@plant("rates::test_runs_start_at_once_until_the_rate_is_pressed")
def logs_are_forgotten_before_it_is_known_who_is_pressed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gates, "START_DELAY", 0)


@plant("rates::test_a_repeated_claim_comes_too_late_to_start")
def a_repeated_claim_may_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claim, "REPEATED", 0)


@plant("rates::test_a_rate_is_exact_and_used")
def starts_are_not_logged(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, gates.SQL, "log_starts", "count + excluded.count", "count")


@plant("claim_numbers::test_a_repeated_number_returns_the_same_jobs")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    right = claim._admit
    patch.setattr(claim, "_admit", lambda step, request: (right(step, request)[0], None))


@plant("settle::test_failed_for_good")
def failures_use_no_attempt(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, settle.SQL, "use_attempt", "attempts + 1", "attempts + 0")


@plant("settle::test_a_run_that_fails_after_it_was_asked_to_stop_is_cancelled")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    def wrong(*, cancel_requested: bool, retry: bool) -> JobState:
        return JobState.SCHEDULED if retry else JobState.DEAD

    patch.setattr(settle, "state_after_failure", wrong)


@plant("lanes::test_a_reset_never_waits_behind_a_burst")
def priorities_are_not_strict(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, lanes.SQL, "check_plain_queue", "min(priority)", "max(priority)")
    rewrite(patch, lanes.SQL, "next_priority", "min(priority)", "max(priority)")
    rewrite(patch, lanes.SQL, "next_priority", "priority > ?", "(? < 0 OR priority < 0)")


@plant("counts::test_every_state_is_counted")
def cancelled_jobs_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    right = Step.move

    def wrong(self: Step, queue: int, before: int | None, after: int | None, count: int = 1) -> None:
        if after != 6:
            right(self, queue, before, after, count)

    patch.setattr(Step, "move", wrong)


@plant("prune::test_a_tombstone_answers_for_an_hour")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, transitions.SQL, "bury", "form = 2,", "form = 2, fence = NULL,")


@plant("members::test_an_answered_job_that_is_not_held_comes_back")
def heartbeats_release_nothing(patch: pytest.MonkeyPatch) -> None:
    right = heartbeat._compare
    patch.setattr(heartbeat, "_compare", lambda step, sent, release: right(step, sent, lambda *_: None))


@plant("crash::test_a_fresh_sweeper_waits_one_lease")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lost_runs, "may_sweep", lambda *_: True)


@plant("retire::test_a_dead_childs_jobs_are_ready_at_once")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, claim.SQL, "admit", "claimant.retired_at", "NULL")


@plant("replay::test_one_token_replays_once")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, commands.SQL, "count_replay", "VALUES (?, 1, ?)", "VALUES (?, 1, zeroblob(length(?)))")


@plant("children::test_a_child_waits_for_all_its_parents")
def children_are_not_updated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dependents, "update", lambda step, limit: 0)


@plant("bad_input::test_a_bad_job_is_not_stored")
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


@plant("transactions_complete::test_a_stale_run_writes_nothing")
def completing_in_a_transaction_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transactions, "judge", lambda state, *_: Answer.APPLIED if state == 3 else Answer.ALREADY)


@plant("transactions_complete::test_permits_are_free_with_the_commit")
def completing_in_a_transaction_frees_no_permit(patch: pytest.MonkeyPatch) -> None:
    ending = tuple(text for text in transactions._ENDING if text != transactions.SQL.unpark)
    assert len(ending) == len(transactions._ENDING) - 1
    patch.setattr(transactions, "_ENDING", ending)


@plant("transactions_complete::test_runs_of_one_claim_one_by_one_in_any_order")
def completing_in_a_transaction_leaves_the_run(patch: pytest.MonkeyPatch) -> None:
    ending = tuple(text for text in transactions._ENDING if text != transactions.SQL.shorten_run)
    assert len(ending) == len(transactions._ENDING) - 1
    patch.setattr(transactions, "_ENDING", ending)


@plant("moves::test_due_jobs_are_named_in_their_order")
def what_time_moves_is_not_named(patch: pytest.MonkeyPatch) -> None:
    right = Step.moved

    def moved(step: Step, job_id: bytes, state: int, *what: Any) -> None:
        if state != READY:
            right(step, job_id, state, *what)

    patch.setattr(Step, "moved", moved)


@plant("moves::test_one_step_names_no_more_than_the_bound")
def moves_are_named_without_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Moves, "add", lambda transitions, move: transitions.named.append(move))


def all_new(stored: Iterable[Stored]) -> list[Stored]:
    return [Stored(each.id, True) for each in stored]


@plant("moves::test_a_settle_names_the_new_ones_of_those_that_follow")
def known_jobs_that_follow_are_named_as_new(patch: pytest.MonkeyPatch) -> None:
    right = enqueue.name_new
    patch.setattr(enqueue, "name_new", lambda step, jobs, stored: right(step, jobs, all_new(stored)))


@plant("moves::test_a_claim_names_what_it_finds_expired")
def the_reason_of_a_move_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Step, "failed", lambda *_: None)


@plant("schedules::test_a_firing_says_which_of_its_jobs_are_new")
def a_firing_calls_every_job_new(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(schedules, "Fired", lambda stored: Fired(all_new(stored)))


@plant("schedules::test_a_line_is_kept_with_the_last_tick")
def a_passed_tick_empties_the_line(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, schedules.SQL, "fire", "line = coalesce(?, line)", "line = coalesce(?, x'5b5d')")


@plant("deaths::test_each_way_to_die_leaves_a_handler")
def only_the_death_of_a_run_is_handled(patch: pytest.MonkeyPatch) -> None:
    right = on_dead.leave_handler
    patch.setattr(on_dead, "leave_handler", lambda step, job: job.state == RUNNING and right(step, job))


@plant("aside::test_who_knows_the_task_takes_them_in_their_old_order")
def what_stood_aside_goes_behind_the_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(choice, "merge", lambda *parts, key: chain(*parts))


@plant("aside::test_a_paused_task_gives_nothing_to_anybody")
def claims_do_not_ask_for_paused_tasks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aside, "passed_over", lambda step, request: frozenset(request.unknown))


@plant("aside::test_a_queue_may_change_its_shape_under_them")
def a_new_shape_forgets_who_stands_aside(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        lanes.SQL,
        "aside_tasks",
        "SELECT name FROM task WHERE name IS NOT NULL",
        "SELECT name FROM task WHERE 0",
    )


@plant("unique_keys::test_whatever_has_ended_is_not")
def an_end_keeps_the_unique_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "free", lambda *_: None)


@plant("unique_keys::test_a_key_until_the_start_is_free_when_it_runs")
def a_start_keeps_the_unique_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "free_at_start", lambda *_: None)


@plant("unique_keys::test_a_repeat_of_a_replace_changes_nothing")
def a_replacing_call_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, keys.SQL, "find_replaced", "replacing.id = ?", "replacing.id = ? AND false")


@plant("unique_keys::test_replay_takes_the_key_again_or_is_refused")
def a_replay_ignores_the_unique_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(keys, "take_again", lambda *_: True)
