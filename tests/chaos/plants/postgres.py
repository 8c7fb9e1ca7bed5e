"""Bugs of the PostgreSQL engine, in the text of its schema."""

from functools import partial

from tests.chaos.plants import ZOMBIES, plant
from tests.chaos.swap import swap
from tests.rewriting import in_schema

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
