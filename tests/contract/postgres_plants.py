"""Planted bugs: each changes the PostgreSQL engine as a mistake would have written it, in Python or in the
text of its schema: the test server's databases are made with it (see `planting`)."""

import pytest

from tests.contract.planting import Plants
from tests.rewriting import in_schema
from tidemill.engines.postgres.jobs import claim, settle
from tidemill.engines.postgres.order.cursors import Cursors
from tidemill.engines.postgres.order.scanned_until import ScannedUntil
from tidemill.model.jobs.run import Answer

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, script: str, old: str, new: str) -> None:
    """Change the text of one script of the schema, in one place."""
    in_schema(patch.setattr, script, old, new)


@plant("settle::test_only_the_holder_settles")
def completion_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "jobs/settle",
        "j.id = ANY (ARRAY[i.id]) AND j.token IS NOT DISTINCT FROM i.fence",
        "j.id = ANY (ARRAY[i.id]) AND j.token IS NOT NULL",
    )


@plant("settle::test_a_repeated_settle_is_told_from_a_zombie")
def a_repeated_settle_is_stale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settle, "ANSWERS", (Answer.APPLIED, Answer.STALE, Answer.STALE))


@plant("release::test_a_released_job_keeps_its_place")
def what_is_released_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "jobs/transitions",
        "CASE WHEN p_keep_seq THEN job.seq ELSE nextval('seq') END",
        "nextval('seq')",
    )


@plant("release::test_a_released_job_keeps_its_place")
def what_is_released_is_not_marked(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/transitions", "back = p_keep_seq", "back = false")


@plant("claim::test_a_job_is_taken_once")
def cursors_run_ahead(patch: pytest.MonkeyPatch) -> None:
    right = Cursors.taken

    def ahead(self: Cursors, queue: str, priority: int, suspect: bool, lane: str, seq: int) -> None:
        right(self, queue, priority, suspect, lane, seq + 2)

    patch.setattr(Cursors, "taken", ahead)


@plant("gates::test_a_queue_runs_no_more_than_allowed")
def permits_are_not_freed(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/settle", "settled_fence = i.fence, gated = false,", "settled_fence = i.fence,")


@plant("parked::test_a_job_that_somebody_has_locked_closes_no_gate")
def a_gate_is_parked_for_what_cannot_be_taken(patch: pytest.MonkeyPatch) -> None:
    missed = "IF NOT FOUND THEN\n            v_done[r.n] := true;\n            c.locked"
    rewrite(patch, "order/turns", missed, missed.replace("NOT FOUND", "false"))


@plant("gates::test_a_permit_comes_back")
def the_gate_of_a_key_is_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/transitions", "IF q.counts_runs THEN", "IF false THEN")


@plant("rates::test_starts_keep_the_rate_though_each_run_is_late_by_another_time")
def runs_start_as_soon_as_they_can(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "order/gates", "(q.starts -> 'delay')::bigint > 0", "false")


@plant("rates::test_a_rate_is_exact_and_used")
def starts_are_not_added_up(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "order/gates", "SET count = start.count + excluded.count", "SET count = excluded.count")


@plant("claim_numbers::test_a_repeated_number_returns_the_same_jobs")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/claim", "ELSIF p_number = v_last THEN", "ELSIF false THEN")


@plant("lanes::test_turns_go_on_where_the_claimant_stopped")
def turns_begin_anew_with_every_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claim.ClaimMemory, "_turns_in", lambda self, claimant, queue: {})


@plant("lanes::test_a_group_may_come_at_any_time")
def lanes_are_not_announced(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/enqueue", "IF v_laned <> '{}' AND v_created", "IF false AND v_created")


@plant("lanes::test_a_reset_never_waits_behind_a_burst")
def priorities_are_upside_down(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "order/plain_lanes",
        "priority = ((c.position - 1) / 2)::smallint",
        "priority = (10 - (c.position - 1) / 2)::smallint",
    )


@plant("promote::test_due_jobs_stand_in_the_order_of_their_due_times")
def due_jobs_stand_by_creation(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/promote", "ORDER BY due_at, seq LIMIT", "ORDER BY seq LIMIT")


@plant("settle::test_failed_for_good")
def failures_use_no_attempt(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/settle", "j.attempts := j.attempts + 1;", "")


@plant("settle::test_a_run_that_fails_after_it_was_asked_to_stop_is_cancelled")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    old = "IF j.cancel_requested THEN\n            signals := to_final_v1(j, 6, p_now);"
    rewrite(patch, "jobs/settle", old, old.replace("j.cancel_requested", "false"))


@plant("prune::test_a_tombstone_answers_for_an_hour")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/transitions", "SET form = 2,", "SET form = 2, settled_fence = NULL,")


@plant("members::test_an_answered_job_that_is_not_held_comes_back")
def heartbeats_give_nothing_back(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "cluster/members", "WHERE h.claim_no <= p_answered[n] AND", "WHERE h.claim_no < 0 AND")


@plant("crash::test_a_stranger_may_not_sweep")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "cluster/members", "entitled := FOUND AND", "entitled := FOUND OR")


@plant("retire::test_a_dead_childs_jobs_are_ready_at_once")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/claim", "IF c.retired_at IS NOT NULL THEN", "IF false THEN")


@plant("replay::test_one_token_replays_once")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/commands", "j.replay_token := p_token;", "")


@plant("children::test_a_child_waits_for_all_its_parents")
def children_are_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/dependents", "EXIT WHEN moved >= p_limit;", "EXIT;")


@plant("transactions_complete::test_a_stale_run_writes_nothing")
def completing_in_a_transaction_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "users/transactions",
        "WHERE id = p_id AND token IS NOT DISTINCT FROM p_fence FOR NO KEY UPDATE;",
        "WHERE id = p_id AND token IS NOT NULL FOR NO KEY UPDATE;",
    )


@plant("transactions_complete::test_the_outcome_stands_if_the_transaction_commits")
def completing_in_a_transaction_is_not_remembered(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "users/transactions", "settled_fence = p_fence, gated = false,", "gated = false,")


@plant("transactions_complete::test_what_a_retirement_had_to_leave_comes_back")
def a_retirement_forgets_what_it_had_to_leave(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch, "cluster/members", "WHERE c.retired_at IS NOT NULL LIMIT p_limit", "WHERE false LIMIT p_limit"
    )


@plant("moves::test_due_jobs_are_named_in_their_order")
def what_is_due_is_not_named(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/promote", "signals := named_all_v1(v_ids);", "signals := '{}';")


@plant("moves::test_one_step_names_no_more_than_the_bound")
def moves_are_named_without_bound(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/moves", "ELSIF v_room = '0' THEN", "ELSIF false THEN")


@plant("moves::test_a_claim_names_what_it_finds_expired")
def the_reason_of_a_move_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "jobs/moves",
        "IF j.failures > (SELECT failures FROM job WHERE id = j.id) THEN",
        "IF false THEN",
    )


@plant("moves::test_a_settle_names_the_new_ones_of_those_that_follow")
def known_jobs_that_follow_are_named_as_new(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/settle", "named_all_v1(v_stored)", "named_all_v1(p_then_ids)")


@plant("schedules::test_a_firing_says_which_of_its_jobs_are_new")
def a_firing_calls_every_job_new(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "cluster/schedules",
        "SELECT e.created, e.signals INTO",
        "SELECT array_fill(true, ARRAY[cardinality(p_ids)]), e.signals INTO",
    )


@plant("late_commits::test_every_so_often_everything_is_scanned_again")
def nothing_is_scanned_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScannedUntil, "scan_again", lambda self: None)


@plant("late_commits::test_a_new_connection_forgets_what_was_seen")
def what_was_seen_outlives_the_connection(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cursors, "forget", lambda self: None)


@plant("late_commits::test_what_was_scanned_is_forgotten_with_the_cursors")
def what_was_scanned_outlives_the_cursors(patch: pytest.MonkeyPatch) -> None:
    """Jobs whose claims a crash undid are passed over."""
    patch.setattr(ScannedUntil, "forget", lambda self: None)


@plant("late_commits::test_what_is_locked_during_a_scan_is_found_once_it_is_free")
def what_is_locked_during_a_scan_is_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "order/late_commits", "FROM mark_back_v1(p_held) AS m", "FROM mark_back_v1('{}') AS m")


@plant("cursor::test_a_late_commit_is_found_within_two_seconds")
def a_scan_asks_for_no_transaction(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "order/late_commits", "IF v_firsts <> '{}' THEN", "IF false THEN")


@plant("late_commits::test_the_newest_transaction_of_all_is_found_when_it_ends_after_a_scan")
def a_scan_asks_only_for_what_its_snapshot_names(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "order/late_commits",
        "IF pg_snapshot_xmax(p_snapshot::pg_snapshot) < p_me::xid8 THEN",
        "IF false THEN",
    )


@plant("schedules::test_a_line_is_kept_with_the_last_tick")
def a_passed_tick_empties_the_line(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "cluster/schedules",
        "line = CASE WHEN p_last_at IS NULL THEN line ELSE p_line END",
        "line = p_line",
    )


@plant("upkeep::test_a_job_that_runs_for_long_keeps_only_its_own_claim_in_mind")
def claims_are_forgotten_of_which_something_runs(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "cluster/members", "AND j.token IS NOT NULL OFFSET 0));", "AND false OFFSET 0));")


@plant("deaths::test_each_death_of_an_id_that_is_used_again_has_one")
def a_second_death_is_taken_for_the_first(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/on_dead", "EXIT WHEN v_stored <> '{}';", "EXIT;")


@plant("aside::test_who_knows_the_task_takes_them_in_their_old_order")
def what_comes_back_from_aside_is_not_marked(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "order/aside", "aside = false, back = true,", "aside = false,")


@plant("aside::test_a_paused_task_gives_nothing_to_anybody")
def plain_claims_do_not_ask_for_paused_tasks(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "jobs/claim_plain", "AND NOT EXISTS (SELECT 1 FROM paused_task)", "")
