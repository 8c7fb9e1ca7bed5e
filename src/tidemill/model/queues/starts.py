"""When the jobs of a claim start, if they are under a rate.

`gate` says why. An engine keeps the rules of a queue beside its options, and answers a claim with the rules
of the queues that gave jobs, and how pressed their gates are. All jobs of a queue that are under a rate start
by the same rules: two gates of one job must not name two delays.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.queues.gate import AT_ONCE, START_DELAY, tolerance_of
from tidemill.model.queues.queue import QueueOptions, Rate
from tidemill.model.time import Span

Pressure: TypeAlias = Literal[0, 1, 2]
FREE: Pressure = 0
"""No gate that gave a permit is pressed."""
PRESSED: Pressure = 1
REPEATED: Pressure = 2
"""The claim was answered before: when its jobs should have started is not known any more."""


class StartRules(msgspec.Struct, frozen=True):
    """Of one queue: when its jobs start, and which of them are under a rate."""

    delay: Span
    """After the claim, while a gate is pressed."""
    within: Span
    """How much later is not too late."""
    every: bool
    """All jobs are under a rate; else those of the tasks, and ..."""
    tasks: list[str]
    per_key: bool
    """... those of all keys but `keys`; False: those of `keys` alone."""
    keys: list[str]

    def bind(self, task: str, key: str | None) -> bool:
        """Whether a job of this task and key is under a rate."""
        return self.every or task in self.tasks or ((key or "") in self.keys) != self.per_key


Starts: TypeAlias = Mapping[str, tuple[StartRules, Pressure]]
"""By queue, as an engine answers them with a claim."""


def start_rules(options: QueueOptions) -> StartRules | None:
    """None: nothing in the queue is under a rate."""
    tasks = {task: limit.rate for task, limit in options.per_task.items() if limit.rate}
    own_limits = {key: limit.rate for key, limit in options.limits.items()}
    per_key = options.per_key.rate if options.per_key else None
    rates: list[Rate | None] = [options.rate, per_key, *tasks.values(), *own_limits.values()]
    within = min([tolerance_of(rate) for rate in rates if rate is not None], default=None)
    if within is None:
        return None
    return StartRules(
        delay=0 if within >= AT_ONCE else START_DELAY,
        within=within,
        every=options.rate is not None,
        tasks=sorted(tasks),
        per_key=per_key is not None,
        keys=sorted(key for key, rate in own_limits.items() if (rate is None) == (per_key is not None)),
    )


def set_starts(jobs: Iterable[ClaimedJob], starts: Starts) -> None:
    """Fill in when these jobs start."""
    for job in jobs:
        found = starts.get(job.queue)
        if found is None or not found[0].bind(job.task, job.key):
            continue
        rules, pressure = found
        if pressure == REPEATED:
            job.start_within = 0
        elif pressure == PRESSED:
            job.start_in, job.start_within = rules.delay, rules.within
        else:
            job.start_within = rules.delay + rules.within
