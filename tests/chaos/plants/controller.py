"""Bugs of controllers and schedules. They run on SQLite, whose cluster starts soonest."""

from typing import Any

from tests.chaos.plants import plant, step
from tests.chaos.swap import swap
from tests.rewriting import in_statement
from tidemill.controller.election import Election
from tidemill.controller.term import ElectedTerm
from tidemill.controller.ticks import schedules
from tidemill.engine.boot import boot_ns
from tidemill.engines.sqlite.cluster import schedules as stored
from tidemill.model.schedules import firing
from tidemill.model.schedules.firing import Firing, job_of
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import SECOND


def everybody_is_elected() -> None:
    """What guards a firing only shows with two controllers at once."""

    async def won(self: Election) -> ElectedTerm:
        return ElectedTerm(1, sent_ns=boot_ns(), lease_s=3_600)

    swap(Election, "won", won)


@plant("sqlite", "terms_do_not_overlap", step(1, "out of reach", 4.0, all_of_them=True))
def a_term_is_trusted_for_ever() -> None:
    """Whatever the clock and the engine say. Nobody is harmed: a firing is guarded."""
    right = Election._renew

    async def renew(self: Election, term: ElectedTerm) -> bool:
        await right(self, term)
        return True

    swap(Election, "_renew", renew)
    swap(ElectedTerm, "left_s", lambda term: term._lease_s)


@plant("sqlite", "one_job_per_tick")
def a_firing_is_not_guarded() -> None:
    everybody_is_elected()
    in_statement(swap, stored.SQL, "fire", "next_at IS ? AND last_at IS ?", "? IS NOT 0 AND ? IS NOT 0")


@plant("sqlite", "one_job_per_tick", step(1, "out of reach", 4.0, all_of_them=True))
def missed_ticks_are_forgotten() -> None:
    right = firing._of_cron

    def wrong(schedule: Schedule, timing: Any, tick: int, now: int, previous: Any) -> Firing:
        made = right(schedule, timing, tick, now, previous)
        return Firing(jobs=made.jobs[-1:], next_at=made.next_at, last_at=made.last_at)

    swap(firing, "_of_cron", wrong)


@plant("sqlite", "intervals_never_overlap")
def an_interval_goes_on_before_its_run_has_ended() -> None:
    """As if it were a cron."""
    right = firing.firing_of

    def wrong(schedule: Schedule, now: int, *, unfinished: Any = ()) -> Firing:
        if isinstance(schedule.timing, Every) and schedule.next_at is not None:
            tick = schedule.next_at
            next_at = now + round(schedule.timing.seconds * SECOND)
            return Firing(jobs=(job_of(schedule, tick),), last_at=tick, next_at=next_at)
        return right(schedule, now, unfinished=unfinished)

    swap(schedules, "firing_of", wrong)


@plant("sqlite", "schedules_catch_up", step(1, "kill controller"))
def the_next_controller_fires_nothing() -> None:
    """As if schedules were the first term's alone."""
    right = schedules.ScheduleTick.run

    async def wrong(self: Any, engine: Any, term: Any) -> float | None:
        first = not [one for one in await engine.schedules.list() if one.last_at is not None]
        self.fires = getattr(self, "fires", first)
        return await right(self, engine, term) if self.fires else 1.0

    swap(schedules.ScheduleTick, "run", wrong)
