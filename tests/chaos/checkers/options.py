"""A queue's options in two layers: what an operator set counts over what the newest code declares.

An operation without an answer may have been done, also a little later: until another one was answered that
certainly came after it, both may be in force.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.chaos.checkers.case import Case, Take
from tests.chaos.checkers.limits import overfull
from tests.chaos.history import Operation
from tests.chaos.queues import VALVE
from tests.chaos.stores.store import CALL_TIMEOUT_S

LATE_S = 2.0
"""A call that was given up may be done this long after that: its server was stopped, or its link was slow."""
NOT_SET = -1
"""In the place of a value: no override."""


class Said(NamedTuple):
    """A value, and the stretch in which it may be in force in its layer."""

    value: float
    since: float
    until: float


def limits_in_force_hold(case: Case) -> list[str]:
    """Whatever is taken of the queue is taken within the limit in force: an override, else what is declared.
    What had started before the limit was lowered runs on."""
    overrides, declared = list(_overrides(case)), list(_declared(case))

    def most(since: float, until: float) -> float:
        values = {one.value for one in overrides if one.since <= until and one.until >= since}
        if NOT_SET in values:
            values |= {one.value for one in declared if one.since <= until and one.until >= since}
        return max(values - {NOT_SET}, default=float("inf"))

    held = [hold for hold in case.holds if _is_of_valve(case, hold.job)]
    return [f"{VALVE}: {text}" for text in overfull(held, most)]


def nothing_starts_while_paused(case: Case) -> list[str]:
    """Between the answer to a pause and the next call that resumes, no claim takes a job of the queue."""
    takes = [
        take for job, takes in case.takes.items() if _is_of_valve(case, job) for take in takes
    ]  # fmt: skip
    return [
        f"{take.job} was claimed between {take.asked_at:.3f} and {take.ended:.3f}, in a pause "
        f"from {since:.3f} to {until:.3f}"
        for since, until in _pauses(case)
        for take in takes
        if _lies_within(take, since, until)
    ]


def options_are_those_last_said(case: Case) -> list[str]:
    """In the end the override is the last one that was set, what is declared is what the newest start said,
    and in force is the one over the other."""
    valve, end = case.reading.valve, float("inf")
    if valve is None:
        return []
    found = []
    said = {one.value for one in _overrides(case) if one.until == end}
    override = _number(valve.overrides[0]) if valve.overrides else NOT_SET
    if override not in said:
        found.append(f"{VALVE}: the override is {override:g}; set last: {sorted(said)}")
    said = {one.value for one in _declared(case) if one.until == end}
    declared = _number(valve.declared)
    if declared not in said:
        found.append(f"{VALVE}: declared is {declared:g}; the newest start said: {sorted(said)}")
    right = declared if override == NOT_SET else override
    if _number(valve.in_force) != right:
        found.append(f"{VALVE}: in force is {_number(valve.in_force):g}, not {right:g}")
    if valve.paused:
        found.append(f"{VALVE}: is paused, after it was resumed")
    return found


def _overrides(case: Case) -> Iterator[Said]:
    changes = [one for one in case.history.operations("override", "reset") if one.phase != "failed"]
    yield Said(NOT_SET, float("-inf"), _answered_after(changes, float("-inf")))
    for one in changes:
        value = float(one.text) if one.kind == "override" else NOT_SET
        yield Said(value, one.began, _answered_after(changes, _done_by(one)))


def _declared(case: Case) -> Iterator[Said]:
    """Of two starts that differ the later one counts, whichever speaks last."""
    said = [one for one in case.history.operations("declare") if one.phase != "failed"]
    yield Said(float("inf"), float("-inf"), min((_end(one) for one in said), default=float("inf")))
    for one in said:
        newer = (_end(other) for other in said if other.engine_at > one.engine_at)
        yield Said(float(one.text), one.began, min(newer, default=float("inf")))


def _pauses(case: Case) -> Iterator[tuple[float, float]]:
    """Stretches in which the queue is certainly paused."""
    resumes = [one for one in case.history.operations("resume") if one.phase != "failed"]
    for pause in case.history.operations("pause"):
        if pause.phase == "ok" and not any(one.began < pause.ended < _done_by(one) for one in resumes):
            later = (one.began for one in resumes if one.began > pause.ended)
            yield pause.ended, min(later, default=float("inf"))


def _lies_within(take: Take, since: float, until: float) -> bool:
    return take.asked_at > since and take.ended < until


def _answered_after(changes: Sequence[Operation], since: float) -> float:
    """When the first change that began after this moment was certainly done."""
    return min((_end(one) for one in changes if one.began > since), default=float("inf"))


def _end(one: Operation) -> float:
    return one.ended if one.phase == "ok" else float("inf")


def _done_by(one: Operation) -> float:
    """When it was done, if it was ever to be done."""
    if one.phase == "ok":
        return one.ended
    return min(one.ended, one.began + CALL_TIMEOUT_S) + LATE_S


def _is_of_valve(case: Case, job: str) -> bool:
    return job in case.reading.jobs and case.reading.jobs[job].queue == VALVE


def _number(limit: int | None) -> float:
    return float("inf") if limit is None else limit
