"""The checkers: each a pure function from a case to what is wrong with it, in words. None: all is well."""

from collections.abc import Callable

from tests.chaos.checkers.attempts import (
    attempts_are_counted,
    crashes_are_counted,
    replays_happen_once,
    the_cancelled_never_start,
)
from tests.chaos.checkers.case import Case
from tests.chaos.checkers.counts import counts_equal_a_recount, the_window_counts_what_ended
from tests.chaos.checkers.deaths import deaths_are_handled
from tests.chaos.checkers.fairness import no_key_starves
from tests.chaos.checkers.fencing import (
    fences_grow,
    one_holder_at_a_time,
    settled_by_whom_it_says,
    stale_writes_change_nothing,
    unique_keys_are_unique,
)
from tests.chaos.checkers.finality import ends_as_its_code_says, exactly_one_final_state, final_states_stay
from tests.chaos.checkers.leases import nobody_living_is_reclaimed, sweepers_are_steady
from tests.chaos.checkers.limits import limits_hold
from tests.chaos.checkers.loss import (
    nobody_runs_what_nobody_asked_for,
    nothing_acknowledged_is_lost,
    refusals_change_nothing,
)
from tests.chaos.checkers.options import (
    limits_in_force_hold,
    nothing_starts_while_paused,
    options_are_those_last_said,
)
from tests.chaos.checkers.rescue import everything_drains, rescue_within_bounds
from tests.chaos.checkers.schedules import intervals_never_overlap, one_job_per_tick, schedules_catch_up
from tests.chaos.checkers.terms import terms_do_not_overlap

Checker = Callable[[Case], list[str]]

CHECKERS: dict[str, Checker] = {
    check.__name__: check
    for check in (
        nothing_acknowledged_is_lost,
        refusals_change_nothing,
        nobody_runs_what_nobody_asked_for,
        exactly_one_final_state,
        final_states_stay,
        ends_as_its_code_says,
        deaths_are_handled,
        fences_grow,
        stale_writes_change_nothing,
        settled_by_whom_it_says,
        one_holder_at_a_time,
        unique_keys_are_unique,
        limits_hold,
        limits_in_force_hold,
        nothing_starts_while_paused,
        options_are_those_last_said,
        no_key_starves,
        attempts_are_counted,
        crashes_are_counted,
        replays_happen_once,
        the_cancelled_never_start,
        counts_equal_a_recount,
        the_window_counts_what_ended,
        nobody_living_is_reclaimed,
        sweepers_are_steady,
        terms_do_not_overlap,
        one_job_per_tick,
        intervals_never_overlap,
        schedules_catch_up,
        rescue_within_bounds,
        everything_drains,
    )
}


def judge(case: Case) -> dict[str, list[str]]:
    """Every checker's findings, by its name."""
    return {name: check(case) for name, check in CHECKERS.items()}
