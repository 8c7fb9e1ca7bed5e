"""Planted bugs: each changes the Redis engine as a mistake would have written it, in the text of a Lua file
(see `planting`)."""

import pytest

from penstock.engines.redis import scripts
from tests.contract.planting import Plants, replaced

PLANTS = Plants()
plant = PLANTS.plant
pytest_configure = PLANTS.configure


def rewrite(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """Change the one place in a file's text."""
    right = scripts.source
    changed = replaced(right(name), old, new, where=f"{name}.lua")
    patch.setattr(scripts, "source", lambda each: changed if each == name else right(each))
    scripts.script.cache_clear()


@plant("settle", "lifecycle")
def settle_ignores_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "or j.st ~= RUNNING or j.f ~= item[1] then", "or j.st ~= RUNNING then")


@plant("settle", "lost_reply")
def a_repeated_settle_is_stale(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "j.sf = j.f\n", "")


@plant("release", "crash")
def what_is_given_back_goes_to_the_end(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "S.to_ready(id, j, true)", "S.to_ready(id, j)")


@plant("claim_numbers", "lost_reply")
def a_repeated_claim_takes_more(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "if c.known.n == c.number then", "if c.known.n == -1 then")


@plant("gates")
def holders_of_a_key_never_go(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "call('SREM', P .. 'held/' .. j.q .. '/k/' .. key, id)", "")


@plant("gates")
def the_gate_of_a_key_stays_parked(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "if call('ZSCORE', P .. 'park/' .. j.q, key) then", "if false then")


@plant("gates")
def what_ran_before_a_limit_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "configure", "S.hold(id, jobs[n], queue)", "")


@plant("rates")
def starts_are_not_added_up(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "gates", "starts = starts + starts_of(entry)\n", "")
    rewrite(patch, "gates", "local sum = S.used(gate, window) + starts", "local sum = starts")


@plant("rates")
def large_numbers_lose_their_digits(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "core", "return string.format('%.0f', number)", "return '' .. number")


@plant("lanes")
def turns_begin_anew_with_every_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "c.known.pos or {}", "{}")


@plant("lanes")
def changed_lanes_are_not_moved(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "configure", "call('ZADD', P .. 'stale/' .. name, 0, suspect .. member)", "")


@plant("promote")
def the_last_due_become_ready_first(patch: pytest.MonkeyPatch) -> None:
    rewrite(
        patch,
        "due",
        "call('ZRANGEBYSCORE', P .. 'due/' .. name, '-inf', S.int(NOW), ",
        "call('ZREVRANGEBYSCORE', P .. 'due/' .. name, S.int(NOW), '-inf', ",
    )


@plant("settle", "cancel")
def a_cancelled_job_is_retried(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", "local retry = not j.ca and retry_in", "local retry = retry_in")


@plant("prune", "settle", "lost_reply")
def tombstones_forget_their_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "f = j.f, sf = j.sf, e = NOW", "f = j.f, e = NOW")


@plant("members")
def beats_give_nothing_back(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "beat", "if j.cn <= said[1] then", "if j.cn < 0 then")


@plant("crash")
def anybody_may_sweep(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "reclaim", "or NOW - sweeper.ss < sweeper.ls then", "then")


@plant("retire", "crash")
def the_retired_may_claim(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "take", "elseif c.known.r then", "elseif false then")


@plant("replay", "lost_reply")
def replay_forgets_its_token(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "replay", "elseif j.tk == token then", "elseif false then")


@plant("children")
def children_are_told_once_for_all(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "children", "j.wf = j.wf - 1", "j.wf = 0")


@plant("counts")
def the_tally_forgets_who_left(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "S.tally(j.q, state, -1)", "")


@plant("watch", "signals")
def watchers_are_not_told(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "moves", "        tell_watchers(id)\n", "")


@plant("settle", "lifecycle")
def plain_completions_ignore_the_fence(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "settle", " and raw:find(stamp:sub(1, 8), 2, true) == 2", "")


@plant("settle", "lost_reply")
def a_repeated_plain_completion_is_stale(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "record", "    j.sf = j.st == COMPLETED and j.f or nil\n", "")


@plant("counts")
def plain_completions_still_run_in_the_tally(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "done", "S.tally(name, RUNNING, -count)", "")


@plant("claim", "lifecycle")
def plain_claims_leave_the_last_job_in_its_lane(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "plain", "lane.key, 0, some - 1)", "lane.key, 0, some - 2)")


@plant("enqueue", "lost_reply")
def plain_jobs_are_stored_again(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "enqueue", "if raw or seen[id] then", "if seen[id] then")


@plant("lanes", "claim")
def plain_claims_take_no_turns(patch: pytest.MonkeyPatch) -> None:
    rewrite(patch, "plain", "and #ids < most then", "and #ids < most and s == sources[1] then")
