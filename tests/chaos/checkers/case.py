"""What a checker is given."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from tests.chaos.history import Event, History, Operation
from tests.chaos.reading import Reading
from tests.chaos.times import Times
from tidemill.model.jobs.job import FINAL

ENDED = frozenset(state.value for state in FINAL)
ANSWERED = ("applied", "already")


class Settle(NamedTuple):
    """One outcome that was offered for one run."""

    job: str
    fence: int
    outcome: str
    began: float
    ended: float
    answer: str
    """applied, already, stale; "unknown" if nobody knows; "failed" if it was refused as a whole."""


class Take(NamedTuple):
    """One job of a claim's answer."""

    job: str
    fence: int
    began: float
    ended: float
    call: tuple[str, int]
    """(claimant, number): a repeat of the same claim has the same."""
    asked_at: float
    """When that call was first made: a repeat brings what an earlier one took."""
    engine_at: int
    """The engine's clock at the claim; 0: unknown, or that of a repeat."""


class Hold(NamedTuple):
    """A stretch in which a run certainly had its job: from the claim's answer until it was first settled or
    released, if that counted."""

    job: str
    fence: int
    since: float
    until: float
    asked_at: float
    """It was taken at this moment or later."""


class Case:
    """A history and a reading, and what several checkers make of them."""

    def __init__(self, history: History, reading: Reading, times: Times | None = None) -> None:
        self.history = history
        self.reading = reading
        self.times = times or Times()

    @cached_property
    def enqueues(self) -> list[Operation]:
        return self.history.operations("enqueue")

    @cached_property
    def settles(self) -> list[Settle]:
        found = []
        for operation in self.history.operations("settle"):
            for place, (job, fence, outcome) in enumerate(
                zip(operation.jobs, operation.fences, operation.outcomes, strict=True)
            ):
                answer = operation.answers[place] if operation.phase == "ok" else operation.phase
                found.append(Settle(job, fence, outcome, operation.began, operation.ended, answer))
        return found

    @cached_property
    def takes(self) -> dict[str, list[Take]]:
        """By job, in the order of the answers."""
        found: dict[str, list[Take]] = defaultdict(list)
        calls: dict[tuple[str, int], list[float]] = defaultdict(list)
        for event in self.history.of("claim"):
            if event.phase != "failed":
                calls[event.claimant, event.number].append(event.began)
        for event in self.history.of("claim"):
            call = (event.claimant, event.number)
            engine_at = event.engine_at if len(calls[call]) == 1 else 0
            for job, fence in zip(event.jobs, event.fences, strict=True):
                found[job].append(Take(job, fence, event.began, event.at, call, min(calls[call]), engine_at))
        return found

    @cached_property
    def holds(self) -> list[Hold]:
        first = {(take.job, take.fence): take for takes in self.takes.values() for take in reversed(takes)}
        offered: dict[tuple[str, int], float] = {}
        counted: set[tuple[str, int]] = set()
        for job, fence, began, answer in self._ends():
            offered[job, fence] = min(began, offered.get((job, fence), began))
            if answer in ANSWERED:
                counted.add((job, fence))
        return [
            Hold(job, fence, take.ended, offered[job, fence], take.asked_at)
            for (job, fence), take in first.items()
            if (job, fence) in counted and take.ended < offered[job, fence]
        ]

    def _ends(self) -> Iterator[tuple[str, int, float, str]]:
        """What was offered of runs: job, fence, when, the answer."""
        for settle in self.settles:
            yield settle.job, settle.fence, settle.began, settle.answer
        for one in self.history.operations("release"):
            answers = one.answers or [one.phase] * len(one.jobs)
            for job, fence, answer in zip(one.jobs, one.fences, answers, strict=True):
                # released already: by us, or with its dead process, nobody knows when
                yield job, fence, one.began, answer if answer == "applied" else one.phase

    @cached_property
    def starts(self) -> list[Event]:
        return self.history.of("start")

    @cached_property
    def attempts(self) -> dict[int, int]:
        """By fence, which attempt of its job a run was."""
        return {event.fences[0]: event.number for event in self.starts}

    def invoked(self, kind: str) -> dict[str, list[Operation]]:
        """Operations of a kind, by job."""
        found: dict[str, list[Operation]] = defaultdict(list)
        for operation in self.history.operations(kind):
            for job in operation.jobs:
                found[job].append(operation)
        return found

    def engine_time(self, at: float) -> float:
        return at + self.reading.engine_offset_s

    def local_time(self, engine_us: int) -> float:
        return engine_us / 1e6 - self.reading.engine_offset_s
