"""Bugs of the Redis engine, in the text of its scripts."""

from functools import partial

from tests.chaos.plants import CALM, ZOMBIES, plant
from tests.chaos.swap import swap
from tests.rewriting import in_script

rewrite = partial(in_script, swap)


@plant("redis", "counts_equal_a_recount")
def the_tally_forgets_who_left() -> None:
    rewrite("moves", "S.tally(j.q, state, -1)", "")


@plant("redis", "stale_writes_change_nothing", *ZOMBIES, rate=3.0, CHAOS_NAP="2.5")
def settle_ignores_the_fence() -> None:
    rewrite("settle", "or j.st ~= RUNNING or j.f ~= item[1] then", "or j.st ~= RUNNING then")


@plant("redis", "limits_hold")
def a_queue_has_room_as_if_nothing_ran() -> None:
    rewrite("gates", "return call('ZCARD', P .. 'runq/' .. name) end)", "return 0 end)")


@plant("redis", "nothing_starts_while_paused", *CALM, CHAOS_VALVE="15", CHAOS_OPERATE="40")
def a_change_of_options_ends_a_pause() -> None:
    rewrite(
        "change_layers",
        "queue.c, queue.pa, queue.pb, queue.pw = old.c, old.pa, old.pb, old.pw",
        "queue.c = old.c",
    )
