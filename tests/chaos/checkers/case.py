"""What a checker is given."""

from collections import defaultdict
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


class Hold(NamedTuple):
    """A stretch in which a run certainly had its job: from the claim's answer to the settle that applied."""

    job: str
    fence: int
    since: float
    until: float


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
        for event in self.history.of("claim"):
            for job, fence in zip(event.jobs, event.fences, strict=True):
                call = (event.claimant, event.number)
                found[job].append(Take(job, fence, event.began, event.at, call))
        return found

    @cached_property
    def holds(self) -> list[Hold]:
        first = {
            (take.job, take.fence): take.ended for takes in self.takes.values() for take in reversed(takes)
        }
        applied: dict[tuple[str, int], float] = {}
        for settle in self.settles:
            if settle.answer == "applied":
                applied[settle.job, settle.fence] = settle.began
        return [
            Hold(job, fence, first[job, fence], until)
            for (job, fence), until in applied.items()
            if (job, fence) in first and first[job, fence] < until
        ]

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
