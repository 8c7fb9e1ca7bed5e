"""No key of a fair queue starves: each claimant serves the lanes in turns.

Judged by the engine's clock. Positions are each claimant's own, so its turns are counted by themselves. A key
waits from the moment at which a job of it became ready until that was claimed. While it waits, a claimant
gives each other key its weight in turns, and then comes to this one. Of that there is an excuse: an engine
with concurrent writers may find a late commit up to a second later, and what a rolled-back claim had locked
up to a lease later.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos.checkers.case import Case
from tests.chaos.faults import FAULTS
from tests.chaos.queues import FAIR, OPTIONS
from tests.chaos.recording.facet import DEATH
from tidemill.model.queues.lane import weight_of
from tidemill.model.time import SECOND, Instant

LATE_COMMIT = 3 * SECOND // 2
"""A second, and the time of the scan that finds it."""
FOR_EVER: Instant = 1 << 62
ROUNDS = 3
"""Passed over for more turns than this of one other key: starved. By the contract it is one round; an answer
that is lost may cost a claimant its position."""


class Turn(NamedTuple):
    """One job that a claimant took of the queue."""

    fence: int
    at: Instant
    key: str


class Stretch(NamedTuple):
    """By the engine's clock, its ends not included."""

    since: Instant
    until: Instant

    def has(self, at: Instant) -> bool:
        return self.since < at < self.until


def no_key_starves(case: Case) -> list[str]:
    """A key that has a job ready is not passed over for turn after turn of another."""
    turns, unsteady = _turns(case), list(_unsteady(case))
    found = []
    for key, stretches in _waiting(case).items():
        for claimant, of_it in turns.items():
            for stretch in stretches:
                found += [
                    f"{key} had a job ready and was passed over for {count} jobs of {other} by {claimant}"
                    for other, count in _passed_over(of_it, key, stretch, unsteady)
                    if count > ROUNDS * weight_of(OPTIONS[FAIR], other)
                ]
    return found


def _turns(case: Case) -> dict[str, list[Turn]]:
    """By claimant, in the order in which it chose. Without those whose time nobody knows."""
    found: dict[str, list[Turn]] = defaultdict(list)
    for job, takes in case.takes.items():
        record = case.reading.jobs.get(job)
        if record is not None and record.queue == FAIR:
            for take in takes:
                if take.engine_at:
                    found[take.call[0]].append(Turn(take.fence, take.engine_at, record.key))
    return {claimant: sorted(turns) for claimant, turns in found.items()}


def _waiting(case: Case) -> dict[str, list[Stretch]]:
    """By key, when some job of it was certainly ready: from the last time that it became ready to the claim
    that followed, if there was one. Suspects have lanes of their own."""
    found: dict[str, list[Stretch]] = defaultdict(list)
    for job in case.reading.jobs.values():
        if job.queue == FAIR and not job.suspect and job.ready_at is not None:
            until = FOR_EVER if job.state == "ready" else job.claimed_at or 0
            if job.ready_at + LATE_COMMIT < until:
                found[job.key].append(Stretch(job.ready_at + LATE_COMMIT, until))
    return {key: list(_joined(stretches)) for key, stretches in found.items()}


def _joined(stretches: list[Stretch]) -> Iterator[Stretch]:
    """Those that overlap become one."""
    since, until = None, 0
    for stretch in sorted(stretches):
        if since is None or stretch.since >= until:
            if since is not None:
                yield Stretch(since, until)
            since = stretch.since
        until = max(until, stretch.until)
    if since is not None:
        yield Stretch(since, until)


def _passed_over(
    turns: list[Turn], key: str, stretch: Stretch, unsteady: list[Stretch]
) -> Iterator[tuple[str, int]]:
    """For each other key, the most turns that it had in a row without one of this key."""
    counts: dict[str, int] = defaultdict(int)
    most: dict[str, int] = defaultdict(int)
    for turn in turns:
        if not stretch.has(turn.at) or any(one.has(turn.at) for one in unsteady):
            continue
        if turn.key == key:
            counts.clear()
        else:
            counts[turn.key] += 1
            most[turn.key] = max(most[turn.key], counts[turn.key])
    yield from most.items()


def _unsteady(case: Case) -> Iterator[Stretch]:
    """From a fault that may roll back claims until a lease after its healing."""
    heals = case.history.of("heal")
    for fault in case.history.of("fault"):
        if _may_roll_back(fault.text):
            healed = [one.at for one in heals if one.text == fault.text and one.at >= fault.at]
            until_s = min(healed, default=fault.at) + case.times.lease_s + case.times.heartbeat_s
            yield Stretch(
                round(case.engine_time(fault.at) * SECOND) - SECOND, round(case.engine_time(until_s) * SECOND)
            )


def _may_roll_back(kind: str) -> bool:
    """Deaths, and what is done to servers and links."""
    return kind == DEATH or kind.startswith("kill") or FAULTS[kind].needs not in ("", "clock")
