"""The buffer: jobs claimed a moment before there is a slot for them, to hide one claim's round trip.

A job that waits here is lost to other workers, is out of order with what they claim, and is released in a
drain. So the buffer is as small as its purpose allows: at most as many jobs as end while a claim is on its
way (rate x claim time), never more than slots, and none while the mean run time is over 20 ms: then a round
trip is no loss worth hiding. Jobs under a limit, a rate or fairness never wait here: their permit would be
taken without use. Nor do suspects, of which a member runs one at a time. (`slots` releases them.)

Pure policy and an ordered list: no clock, no engine.
"""

from math import ceil

from tidemill.model.time import MILLISECOND, Span
from tidemill.worker.running.run import Run

SLOW: Span = 20 * MILLISECOND
WEIGHT = 0.3
"""The weight of the latest trip in each mean: about the last five trips count."""


class Ahead:
    """How many jobs may be claimed ahead of their slots."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.limit = 0
        self._ended = 0
        self._ran: Span = 0
        self._mean_ran = 0.0
        self._rate = 0.0
        self._claim_s = 0.0

    def ended(self, runs: list[Run]) -> None:
        """These have ended since the last trip."""
        self._ended += len(runs)
        self._ran += sum([run.ran for run in runs])

    def trip(self, *, took_s: float, since_last_s: float) -> None:
        """A claim came back after `took_s`; the one before it came back `since_last_s` ago."""
        self._claim_s = _mean(self._claim_s, took_s)
        if self._ended:
            self._mean_ran = _mean(self._mean_ran, self._ran / self._ended)
        self._rate = _mean(self._rate, self._ended / max(since_last_s, 1e-6))
        self._ended = self._ran = 0
        self.limit = ahead_limit(self._slots, self._rate, self._claim_s, self._mean_ran)


def ahead_limit(slots: int, rate: float, claim_s: float, mean_ran: float) -> int:
    """The rule. `rate` in jobs a second, `mean_ran` in microseconds."""
    return 0 if mean_ran > SLOW else min(slots, ceil(rate * claim_s))


def _mean(mean: float, latest: float) -> float:
    return latest if mean == 0.0 else mean + WEIGHT * (latest - mean)


class Buffer(list[Run]):
    """Runs that wait, by priority, then in the order of their claim. The most urgent is last, where `pop` is
    cheap. (It is a list itself, because every end of a run checks whether something waits.)"""

    def add(self, runs: list[Run]) -> None:
        """These wait too."""
        self += runs
        self.sort(key=_urgency, reverse=True)

    def find(self, fence: int) -> Run | None:
        """The one with this fence."""
        return next((run for run in self if run.fence == fence), None)

    def empty(self) -> list[Run]:
        """Take all, the most urgent first."""
        runs = self[::-1]
        self.clear()
        return runs

    def of_queue(self, queue: str) -> int:
        """How many of one queue wait."""
        return sum(run.job.queue == queue for run in self)


def _urgency(run: Run) -> tuple[int, int]:
    return run.job.priority, run.fence
