"""Bugs of the PostgreSQL engine, in the text of its schema."""

from functools import partial

from tests.chaos.plants import CALM, ZOMBIES, plant
from tests.chaos.swap import swap
from tests.rewriting import in_schema
from tidemill.engine.shared.turns import ClaimTurns

rewrite = partial(in_schema, swap)


@plant("postgres", "stale_writes_change_nothing", *ZOMBIES, rate=3.0, CHAOS_NAP="2.5")
def completion_ignores_the_fence() -> None:
    rewrite(
        "jobs/settle",
        "j.id = ANY (ARRAY[i.id]) AND j.token IS NOT DISTINCT FROM i.fence",
        "j.id = ANY (ARRAY[i.id]) AND j.token IS NOT NULL",
    )


@plant("postgres", "attempts_are_counted")
def a_failed_attempt_is_free() -> None:
    rewrite("jobs/settle", "j.attempts := j.attempts + 1;", "")


@plant("postgres", "deaths_are_handled", CHAOS_POISON="5")
def the_death_of_a_crasher_is_not_handled() -> None:
    rewrite(
        "jobs/transitions",
        "IF p_state = 5 AND j.on_dead IS",
        "IF p_state = 5 AND j.crashes = 0 AND j.on_dead IS",
    )


@plant("postgres", "limits_hold", CHAOS_NARROW="15")
def the_holders_of_a_task_are_not_counted() -> None:
    rewrite(
        "order/gates",
        "AND task = p_name LIMIT p_concurrency",
        "AND task = p_name AND false LIMIT p_concurrency",
    )


@plant("postgres", "no_key_starves", *CALM, CHAOS_CROWD="6")
def turns_begin_anew_with_each_claim() -> None:
    """So a key that comes early in their order has most of them."""
    swap(ClaimTurns, "lane", lambda *_: (None, 0))
