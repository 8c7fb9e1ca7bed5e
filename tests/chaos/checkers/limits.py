"""Never more jobs at once than a limit allows: that of a queue, of a task in it, of a key."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.chaos.checkers.case import Case, Hold
from tests.chaos.queues import APP, OPTIONS
from tests.chaos.reading import SeenJob


class Gate(NamedTuple):
    """One limit: how many jobs it lets run at once."""

    name: str
    most: int


Most = Callable[[float, float], float]
"""The most that may have been allowed at some moment of a stretch."""


def limits_hold(case: Case) -> list[str]:
    """At no moment do more jobs certainly run behind a limit than it allows."""
    behind: dict[Gate, list[Hold]] = defaultdict(list)
    for hold in case.holds:
        job = case.reading.jobs.get(hold.job)
        for gate in gates_of(job) if job is not None else ():
            behind[gate].append(hold)
    found = []
    for gate, holds in behind.items():
        found += [f"{gate.name}: {text}" for text in overfull(holds, lambda *_, most=gate.most: most)]
    return found


def gates_of(job: SeenJob) -> Iterator[Gate]:
    """Those that a job stands behind, of the queues whose options never change."""
    options = OPTIONS.get(job.queue)
    if options is None:
        return
    task = options.limit_of_task(f"{APP}.{job.task}")
    key = options.limit_of_key(job.key)
    for name, limit in (("", options.own), (f" task {job.task}", task), (f" key {job.key}", key)):
        if limit is not None and limit.concurrency is not None:
            yield Gate(f"{job.queue}{name}", limit.concurrency)


def overfull(holds: list[Hold], most: Most) -> Iterator[str]:
    """Each moment at which one more job was held than was allowed when the last of them was taken."""
    live: list[Hold] = []
    for hold in sorted(holds, key=lambda one: one.since):
        live = [*(one for one in live if one.until > hold.since), hold]
        allowed = most(max(one.asked_at for one in live), hold.since)
        if len(live) > allowed:
            others = ", ".join(f"{one.job} until {one.until:.3f}" for one in live[:-1])
            yield (
                f"{len(live)} at once instead of {allowed:g}: "
                f"{hold.job} since {hold.since:.3f} beside {others}"
            )
