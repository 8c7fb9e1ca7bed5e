"""Recording outcomes: what a settle sends, and how its answer is read."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.codes import ANSWERS, failure_of, note_code, outcome_code
from tidemill.engines.postgres.jobs.arrays import job_arrays
from tidemill.model.jobs.death import said as says
from tidemill.model.jobs.fingerprint import as_recorded
from tidemill.model.jobs.job import Failure, NewJob
from tidemill.model.jobs.run import (
    Answer,
    Completed,
    LostRun,
    Note,
    Release,
    Settlement,
)

_encode = msgspec.json.Encoder().encode


def said(failure: Failure) -> bytes:
    """What a failure says, as it is kept; the rest is filled in by the engine."""
    return _encode(says(as_recorded(failure)))


class Settling:
    """One call of settle. Items are sent in the order of their ids, in which rows are locked; an item that
    occurs twice is sent once, because an UPDATE takes one of several matches at will."""

    def __init__(self, settlements: Sequence[Settlement]) -> None:
        self._settlements = settlements
        first: dict[tuple[bytes, int], Settlement] = {}
        for settlement in settlements:
            first.setdefault((settlement.id, settlement.fence), settlement)
        self._items = list(first.values())
        self._one_by_one = len({item.id for item in self._items}) != len(self._items)
        if not self._one_by_one:
            self._items.sort(key=lambda item: item.id)

    def parameters(self) -> list[object]:
        """Those of `settle_v1` up to `now`."""
        if not self._one_by_one and all(isinstance(item.outcome, Completed) for item in self._items):
            return self._completions()
        kinds, rans, results, saids, retries = [], [], [], [], []
        for item in self._items:
            outcome = outcome_code(item)
            kinds.append(outcome.code)
            rans.append(item.ran)
            results.append(outcome.result)
            saids.append(None if outcome.failure is None else said(outcome.failure))
            retries.append(outcome.retry_in)
        return [
            [item.id for item in self._items], [item.fence for item in self._items], kinds, rans, results,
            saids, retries, self._one_by_one, *self._then(),
        ]  # fmt: skip

    def _completions(self) -> list[object]:
        """Of plain completions, empty arrays say the rest."""
        items = self._items
        results = [item.outcome.result for item in items if isinstance(item.outcome, Completed)]
        return [
            [item.id for item in items], [item.fence for item in items], [], [item.ran for item in items],
            results, [], [], False, *self._then(),
        ]  # fmt: skip

    def _then(self) -> list[object]:
        """Jobs and schedules that follow, in the order of the call."""
        position = {id(item): number for number, item in enumerate(self._items, 1)}
        of: list[object] = []
        jobs: list[NewJob] = []
        schedules: list[tuple[object, ...]] = []
        for settlement in self._settlements:
            then = settlement.then
            if then is not None and id(settlement) in position:
                of += [position[id(settlement)]] * len(then.jobs)
                jobs += then.jobs
                if then.schedule is not None:
                    said = (then.schedule, then.schedule_in, then.schedule_version)
                    schedules.append((position[id(settlement)], *said))
        columns = [list(column) for column in zip(*schedules, strict=True)] if schedules else [[]] * 4
        return [of, *job_arrays(jobs), *columns]

    def answers(self, codes: Sequence[int]) -> list[Answer]:
        """In the order of the call: the second of two equal items finds the first one's work."""
        given = {(item.id, item.fence): ANSWERS[code] for item, code in zip(self._items, codes, strict=True)}
        answers = []
        for settlement in self._settlements:
            run = settlement.id, settlement.fence
            answers.append(given[run])
            if given[run] is Answer.APPLIED:
                given[run] = Answer.ALREADY
        return answers


def release_parameters(releases: Sequence[Release]) -> list[list[object]]:
    """Those of `release_v1`, without `now`."""
    return [
        [item.id for item in releases],
        [item.fence for item in releases],
        [item.delay for item in releases],
        [item.reason for item in releases],
    ]


def note_parameters(notes: Sequence[Note]) -> list[list[object]]:
    """Those of `write_v1`, without `now`."""
    rows = [(note.id, note.fence, *note_code(note)) for note in notes]
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]


def lost_run_parameters(lost_runs: Sequence[LostRun]) -> list[list[object]]:
    """Those of `retire_v1` between claimant and `now`."""
    return [
        [run.id for run in lost_runs],
        [run.fence for run in lost_runs],
        [run.verdict for run in lost_runs],
        [said(failure_of(run)) for run in lost_runs],
    ]
