"""Recording outcomes: what a settle sends, and what its answer tells."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.checks import check_batch, check_ids
from tidemill.engines.postgres.arrays import job_arrays
from tidemill.model.job import Failure, NewJob, clip_failure
from tidemill.model.run import (
    Answer,
    Checkpoint,
    Completed,
    Crashed,
    Failed,
    LogLine,
    Loss,
    Note,
    Progress,
    Release,
    Settlement,
    Started,
)
from tidemill.model.time import check_span

ANSWERS = (Answer.APPLIED, Answer.ALREADY, Answer.STALE)
COMPLETED, FAILED, STOPPED, CRASHED = range(4)
STARTED, PROGRESS, LINE, CHECKPOINT = range(4)

_encode = msgspec.json.Encoder().encode


def said(failure: Failure) -> bytes:
    """What a failure says, as it is kept; the rest is filled in by the engine."""
    clipped = clip_failure(failure)
    return _encode(
        Failure(kind=clipped.kind, error=clipped.error, message=clipped.message, traceback=clipped.traceback)
    )


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
            kind, result, text, retry_in = _outcome(item)
            kinds.append(kind)
            rans.append(item.ran)
            results.append(result)
            saids.append(text)
            retries.append(retry_in)
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
        place = {id(item): number for number, item in enumerate(self._items, 1)}
        of: list[object] = []
        jobs: list[NewJob] = []
        schedules: list[tuple[int, str, int]] = []
        for settlement in self._settlements:
            then = settlement.then
            if then is not None and id(settlement) in place:
                of += [place[id(settlement)]] * len(then.jobs)
                jobs += then.jobs
                if then.schedule is not None:
                    schedules.append((place[id(settlement)], then.schedule, then.schedule_in))
        columns = [list(column) for column in zip(*schedules, strict=True)] if schedules else [[], [], []]
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


def _outcome(item: Settlement) -> tuple[int, bytes | None, bytes | None, int | None]:
    match item.outcome:
        case Completed(result=result):
            return COMPLETED, result, None, None
        case Failed(failure=failure, retry_in=retry_in):
            return FAILED, None, said(failure), retry_in
        case Crashed(message=message):
            return CRASHED, None, said(Failure(kind="crash", message=message or "its process died")), None
        case _:
            return STOPPED, None, None, None


def release_parameters(releases: Sequence[Release]) -> list[list[object]]:
    """Those of `release_v1`, without `now`."""
    check_ids([item.id for item in releases])
    for item in releases:
        check_span(item.delay or 0)
    return [
        [item.id for item in releases],
        [item.fence for item in releases],
        [item.delay for item in releases],
    ]


def note_parameters(notes: Sequence[Note]) -> list[list[object]]:
    """Those of `write_v1`, without `now`."""
    check_ids([note.id for note in notes])
    rows = [(note.id, note.fence, *_entry(note)) for note in notes]
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(6)]


def _entry(note: Note) -> tuple[int, int | None, str | None, bytes | None]:
    match note.entry:
        case Started():
            return STARTED, None, None, None
        case Progress(value=value):
            return PROGRESS, None, None, value
        case LogLine(number=number, level=level, message=message):
            return LINE, number, level, message.encode(errors="backslashreplace")
        case Checkpoint(name=name, value=value):
            return CHECKPOINT, None, name, value


def loss_parameters(losses: Sequence[Loss]) -> list[list[object]]:
    """Those of `retire_v1` between claimant and `now`."""
    check_batch(len(losses))
    return [
        [loss.id for loss in losses],
        [loss.fence for loss in losses],
        [loss.verdict for loss in losses],
        [
            said(
                Failure(
                    kind="crash" if loss.verdict == "crash" else "lost",
                    message=loss.message or "its process died",
                )
            )
            for loss in losses
        ],
    ]
