"""Turn and turn about: A B A B A B.

A ratio is the median of the ratios of neighbouring turns, because the machine's mood changes over
seconds and minutes, and neighbours share it.
"""

import gc
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import NamedTuple

import msgspec


class Turn(NamedTuple):
    """What one turn took."""

    rate: float
    """Jobs per second."""
    cpu: float
    """Microseconds of processor time per job: steadier than the rate on a busy machine."""


Subject = Callable[[], Awaitable[Turn]]
"""Prepares its turn, takes it, answers what it took."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is compared, and what we hope for."""

    measure: str
    case: str
    against: str
    """What the reference is."""
    wanted: float | None = None
    """The least ratio that we are content with."""
    cpu_wanted: float | None = None
    """The most processor time of a job, as a multiple of the reference's."""
    busier_wanted: float | None = None
    """Two processes: the largest share that one of them should get."""


class Comparison(msgspec.Struct, kw_only=True):
    """Two subjects that took turns."""

    question: Question
    ours: list[Turn]
    """By round."""
    reference: list[Turn]
    busier: list[float] = []
    """Two processes: the share of the one that got more, by round."""

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def ratios(self) -> list[float]:
        return [ours.rate / other.rate for ours, other in zip(self.ours, self.reference, strict=True)]

    @property
    def cpu_ratio(self) -> float:
        pairs = zip(self.ours, self.reference, strict=True)
        return median(ours.cpu / max(other.cpu, 0.001) for ours, other in pairs)

    @property
    def met(self) -> bool | None:
        """Whether it is as wanted; None where nothing is wanted."""
        verdicts = []
        if self.question.wanted is not None:
            verdicts.append(self.ratio >= self.question.wanted)
        if self.question.cpu_wanted is not None:
            verdicts.append(self.cpu_ratio <= self.question.cpu_wanted)
        if self.question.busier_wanted is not None:
            verdicts.append(median(self.busier) <= self.question.busier_wanted)
        return all(verdicts) if verdicts else None


async def compare(
    question: Question, ours: Subject, reference: Subject, rounds: int, advance: Callable[[], None]
) -> Comparison:
    """Let the two take turns."""
    found = Comparison(question=question, ours=[], reference=[])
    for _ in range(rounds):
        found.ours.append(await ours())
        advance()
        found.reference.append(await reference())
        advance()
    return found


class Watch:
    """Times a block: `with Watch() as watch: ...`, then `watch.turn(jobs)`. `also` is processor time of
    others who work for it."""

    def __init__(self, also: Callable[[], float] = lambda: 0.0) -> None:
        self._also = also

    def __enter__(self) -> "Watch":
        gc.collect()  # so that nobody pays for a former turn's rubbish
        self._cpu_began = time.process_time() + self._also()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self._took = time.perf_counter() - self._began
        self._cpu = time.process_time() + self._also() - self._cpu_began

    def turn(self, jobs: int) -> Turn:
        return Turn(jobs / self._took, 1e6 * self._cpu / jobs)
