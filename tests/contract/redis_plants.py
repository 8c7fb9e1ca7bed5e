"""Planted bugs: each changes the Redis engine as a mistake would have written it, in the text of a Lua file
(see `planting`)."""

import pytest

from tests.contract.planting import Plants
from tests.rewriting import in_script

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Change the one place in a file's text."""
    in_script(patch.setattr, name, old, new)


@plant("settle::test_only_the_holder_settles")
def settle_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "or j.st ~= RUNNING or j.f ~= item[1] then", "or j.st ~= RUNNING then")


@plant("settle::test_failed_for_good")
def a_repeated_settle_is_stale(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "j.sf = j.f\n", "")


@plant("release::test_a_released_job_keeps_its_place")
def what_is_released_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "S.to_ready(id, j, true)", "S.to_ready(id, j)")


@plant("claim_numbers::test_a_repeated_number_returns_the_same_jobs")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "if c.known.n == c.number then", "if c.known.n == -1 then")


@plant("gates::test_each_key_has_its_own_gate")
def holders_of_a_key_never_go(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "call('SREM', P .. 'held/' .. j.q .. '/k/' .. key, id)", "")


@plant("gates::test_each_key_has_its_own_gate")
def the_gate_of_a_key_stays_parked(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "if call('ZSCORE', P .. 'park/' .. j.q, key) then", "if false then")


@plant("gates::test_a_new_limit_counts_what_runs_already")
def what_ran_before_a_limit_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "change_layers", "S.hold(id, jobs[n], queue)", "")


@plant("rates::test_starts_keep_the_rate_though_each_run_is_late_by_another_time")
def runs_start_as_soon_as_they_can(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "gates", "hurried[name] and PRESSED or FREE", "FREE")


@plant("rates::test_runs_start_at_once_until_the_rate_is_pressed")
def logs_are_forgotten_before_it_is_known_who_is_pressed(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "gates",
        "'-inf', S.int(NOW - window - START_DELAY))\n    local length",
        "'-inf', S.int(NOW - window))\n    local length",
    )


@plant("rates::test_a_rate_is_exact_and_used")
def starts_are_not_added_up(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "gates", "starts = starts + starts_of(entry)\n", "")
    rewrite(patch, "gates", "local sum = S.used(gate, window + START_DELAY) + starts", "local sum = starts")


@plant("rates::test_runs_start_at_once_until_the_rate_is_pressed")
def large_numbers_lose_their_digits(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "core", "return string.format('%.0f', number)", "return '' .. number")


@plant("lanes::test_turns_go_on_where_the_claimant_stopped")
def turns_begin_anew_with_every_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "c.known.pos or {}", "{}")


@plant("lanes::test_waiting_jobs_move_when_a_queue_becomes_fair")
def changed_lanes_are_not_moved(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "change_layers", "call('ZADD', P .. 'stale/' .. name, 0, kind .. member)", "")


@plant("promote::test_due_jobs_stand_in_the_order_of_their_due_times")
def the_last_due_become_ready_first(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "due",
        "call('ZRANGEBYSCORE', P .. 'due/' .. name, '-inf', S.int(NOW), ",
        "call('ZREVRANGEBYSCORE', P .. 'due/' .. name, S.int(NOW), '-inf', ",
    )


@plant("settle::test_a_run_that_fails_after_it_was_asked_to_stop_is_cancelled")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "local retry = not j.ca and retry_in", "local retry = retry_in")


@plant("prune::test_a_tombstone_answers_for_an_hour")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "f = j.f, sf = j.sf, e = NOW", "f = j.f, e = NOW")


@plant("members::test_an_answered_job_that_is_not_held_comes_back")
def heartbeats_give_nothing_back(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "heartbeat", "if j.cn <= said[1] then", "if j.cn < 0 then")


@plant("crash::test_a_fresh_sweeper_waits_one_lease")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "reclaim", "or NOW - sweeper.ss < sweeper.ls then", "then")


@plant("retire::test_a_dead_childs_jobs_are_ready_at_once")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "elseif c.known.r then", "elseif false then")


@plant("replay::test_one_token_replays_once")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "replay", "elseif j.tk == token then", "elseif false then")


@plant("children::test_a_child_waits_for_all_its_parents")
def children_are_told_once_for_all(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "dependents", "j.wf = j.wf - 1", "j.wf = 0")


@plant("counts::test_every_state_is_counted")
def the_tally_forgets_who_left(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "S.tally(j.q, state, -1)", "")


@plant("watch::test_every_end_is_signalled")
def watchers_are_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "        signal_watchers(id)\n", "")


@plant("settle::test_a_batch_that_only_has_wrong_fences_is_stale")
def plain_completions_ignore_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", " and raw:find(stamp:sub(1, 8), 2, true) == 2", "")


@plant("settle::test_completed")
def a_repeated_plain_completion_is_stale(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "record", "    j.sf = j.st == COMPLETED and j.f or nil\n", "")


@plant("counts::test_every_state_is_counted")
def plain_completions_still_run_in_the_tally(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "done", "S.tally(name, RUNNING, -count)", "")


@plant("claim::test_a_job_is_taken_once")
def plain_claims_leave_the_last_job_in_its_lane(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "plain", "lane.key, 0, some - 1)", "lane.key, 0, some - 2)")


@plant("enqueue::test_a_finished_job_still_owns_its_id")
def plain_jobs_are_stored_again(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "enqueue", "if raw or seen[id] then", "if seen[id] then")


@plant("lanes::test_priorities_count_inside_a_queue_only")
def plain_claims_take_no_turns(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "plain", "and #ids < most then", "and #ids < most and s == sources[1] then")


@plant("moves::test_due_jobs_are_named_in_their_order")
def what_waits_is_not_named(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "j.st = state\n    S.moved(id, j, state)\n", "j.st = state\n")


@plant("moves::test_one_step_names_no_more_than_the_bound")
def moves_are_named_without_bound(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "core", "elseif n >= 5 * A.naming then", "elseif false then")


@plant("moves::test_a_claim_names_what_it_finds_expired")
def the_reason_of_a_move_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "    S.why(id, said)\n", "")


@plant("moves::test_a_settle_names_children_and_what_is_tried_again")
def what_completed_is_named_too(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "core", "if not A.naming or state == COMPLETED then", "if not A.naming then")


@plant("schedules::test_a_firing_says_which_of_its_jobs_are_new")
def a_firing_calls_every_job_new(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "fire", "created[n] = S.store(new)", "S.store(new)\n    created[n] = 1")


@plant("schedules::test_a_line_is_kept_with_the_last_tick")
def a_replaced_schedule_loses_its_line(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "put",
        "new.l, new.li, new.ke, new.pa, new.v = old.l, old.li,",
        "new.l, new.li, new.ke, new.pa, new.v = old.l, nil,",
    )


@plant("deaths::test_each_way_to_die_leaves_a_handler")
def the_death_of_a_crasher_is_not_handled(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "if state == DEAD and j.od then", "if state == DEAD and j.od and not j.su then")


@plant("aside::test_who_knows_the_task_takes_them_in_their_old_order")
def what_stood_aside_goes_behind_the_others(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "sources",
        "(not h or tonumber(other.ids[other.at + 1]) < tonumber(h.ids[h.at + 1]))",
        "not h",
    )


@plant("aside::test_the_end_of_a_pause_signals_where_jobs_stand_aside")
def the_end_of_a_pause_signals_nobody(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "resume_task", "S.ready_signal(queue)", "")
