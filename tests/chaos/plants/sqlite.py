"""Bugs of the SQLite engine."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from tests.chaos.plants import CALM, ZOMBIES, plant, step
from tests.chaos.swap import swap
from tests.rewriting import in_statement
from tidemill.engine.shared import queue_layers
from tidemill.engines.sqlite.cluster import queues
from tidemill.engines.sqlite.cluster.catalogue import Catalogue
from tidemill.engines.sqlite.jobs import commands, enqueue, lost_runs, plain_settle, settle
from tidemill.engines.sqlite.jobs.step import RUNNING, Step
from tidemill.engines.sqlite.unique import meeting
from tidemill.model.jobs.job import CancelAnswer, NewJob, Stored
from tidemill.model.jobs.run import Answer
from tidemill.model.queues.layers import Declaration, Layers
from tidemill.model.queues.queue import Limit, QueueOptions

rewrite = partial(in_statement, swap)


@plant("sqlite", "stale_writes_change_nothing", *ZOMBIES, rate=3.0, CHAOS_NAP="2.5")
def anybody_may_settle() -> None:
    def judge(job: Any, fence: int) -> Answer:
        return Answer.APPLIED if job and job.state == RUNNING else Answer.STALE

    swap(settle, "judge", judge)
    swap(plain_settle, "complete", lambda *_: False)


@plant("sqlite", "nothing_acknowledged_is_lost")
def the_last_of_many_is_not_stored() -> None:
    right = enqueue.enqueue

    def wrong(step: Step, jobs: Sequence[NewJob]) -> list[Stored]:
        stored = right(step, jobs[:-1] if len(jobs) > 3 else jobs)
        return stored + [Stored(job.id, True) for job in jobs[len(stored) :]]

    swap(enqueue, "enqueue", wrong)


@plant("sqlite", "attempts_are_counted")
def failures_use_no_attempt() -> None:
    rewrite(settle.SQL, "use_attempt", "attempts + 1", "attempts + 0")


@plant("sqlite", "counts_equal_a_recount")
def cancelled_jobs_are_not_counted() -> None:
    right = Step.move

    def wrong(self: Step, queue: int, before: int | None, after: int | None, count: int = 1) -> None:
        if after != 6:
            right(self, queue, before, after, count)

    swap(Step, "move", wrong)


@plant("sqlite", "the_cancelled_never_start")
def cancel_only_says_so() -> None:
    right = commands._cancel

    def wrong(step: Step, job: Any) -> CancelAnswer:
        return CancelAnswer.CANCELLED if job and job.state < RUNNING else right(step, job)

    swap(commands, "_cancel", wrong)


@plant("sqlite", "nobody_living_is_reclaimed")
def leases_end_early() -> None:
    rewrite(lost_runs.SQL, "gone", "gone_at < ?", "gone_at < ? + 2200000")


@plant(
    "sqlite", "sweepers_are_steady", step(1, "out of reach", 4.0, all_of_them=True), rate=4.0, CHAOS_NAP="2.5"
)
def anybody_may_sweep() -> None:
    swap(lost_runs, "may_sweep", lambda *_: True)


@plant("sqlite", "limits_hold")
def limits_are_not_stored() -> None:
    right = queues._put_in_force

    def wrong(step: Step, before: Any, options: Any) -> None:
        right(step, before, replace(options, per_key=None))

    swap(queues, "_put_in_force", wrong)


@plant("sqlite", "limits_hold")
def a_key_has_no_limit_of_its_own() -> None:
    def limit_of_key(self: QueueOptions, _key: str | None) -> Limit | None:
        return self.per_key or None

    swap(QueueOptions, "limit_of_key", limit_of_key)


@plant("sqlite", "limits_in_force_hold", *CALM, CHAOS_VALVE="15", CHAOS_OPERATE="40")
def a_process_does_not_see_that_a_limit_was_lowered() -> None:
    """It keeps the highest that it has read."""
    right = Catalogue.refresh

    def refresh(self: Catalogue) -> None:
        known = dict(self.by_name)
        right(self)
        for name, queue in known.items():
            now = self.by_name[name]
            if (queue.options.concurrency or 0) > (now.options.concurrency or 0) > 0:
                self.by_name[name] = self.by_pk[queue.pk] = now._replace(options=queue.options)

    swap(Catalogue, "refresh", refresh)


@plant(
    "sqlite",
    "options_are_those_last_said",
    step(1, "another release", target=0),
    step(4.5, "kill worker", target=1),
)
def an_old_start_puts_old_options_back() -> None:
    """As if the last declaration were right, whatever its start."""

    def with_declaration(layers: Layers, app: str, declaration: Declaration) -> Layers:
        return replace(layers, declared={**layers.declared, app: declaration})

    swap(queue_layers, "with_declaration", with_declaration)


@plant("sqlite", "unique_keys_are_unique", rate=8.0)
def unique_keys_are_not_looked_up() -> None:
    swap(meeting, "_holder", lambda *_: None)


@plant("sqlite", "fences_grow", step(1, "kill worker", target=0), step(2, "kill worker", target=1))
def fences_are_attempt_numbers() -> None:
    """As if a fence only had to differ from the job's own last one."""
    right = Step.draw_fences

    def wrong(self: Step, count: int) -> int:
        return right(self, count) // 1_000_000 * 1_000_000

    swap(Step, "draw_fences", wrong)
