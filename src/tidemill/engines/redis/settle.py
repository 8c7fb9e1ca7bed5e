"""Recording outcomes: what settles, notes, releases and losses send."""

from collections.abc import Sequence
from struct import Struct

from tidemill.engine.shared.checks import check_batch, check_ids
from tidemill.engines.redis.call import Call
from tidemill.model.ids import ID_SIZE
from tidemill.model.job import Failure, clip_failure
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
_DONE = Struct(">16sQQ?")
_BEYOND = 1 << 53
"""No fence is so large."""
COMPLETED, FAILED, STOPPED, CRASHED = range(4)
STARTED, PROGRESS, LINE, CHECKPOINT = range(4)

Said = tuple[str, str, str, str]


def said(failure: Failure) -> Said:
    """What a failure says; the rest is filled in by the engine."""
    clipped = clip_failure(failure)
    return clipped.kind, clipped.error, clipped.message, clipped.traceback


class SettleCall(Call):
    """As `settle.lua` reads it: first those that just completed, then the others."""

    def __init__(self, settlements: Sequence[Settlement]) -> None:
        super().__init__()
        self._places: list[int] = []
        """Of the others, among all."""
        done, results = self._split(settlements)
        # One argument for all of them: to pack three for each took 0.4 us a job.
        self.add(b"".join(done), *results)
        self._done = len(done)
        self.values.update(done=self._done, results=len(results))
        self.values["items"] = [_item(self, settlements[place]) for place in self._places]

    def _split(self, settlements: Sequence[Settlement]) -> tuple[list[bytes], list[bytes]]:
        """Those that just completed, and their results; the places of the others are kept."""
        done: list[bytes] = []
        results: list[bytes] = []
        if len({item.id for item in settlements}) < len(settlements):  # one of them decides about another
            self._places += range(len(settlements))
            return done, results
        for place, item in enumerate(settlements):
            outcome = item.outcome
            if (
                type(outcome) is Completed
                and item.then is None
                and outcome.result != b""  # which could not be told from none
                and 0 <= item.fence < _BEYOND
                and len(item.id) == ID_SIZE
            ):
                done.append(_DONE.pack(item.id, item.fence, item.ran, outcome.result is not None))
                if outcome.result is not None:
                    results.append(outcome.result)
            else:
                self._places.append(place)
        return done, results

    def in_order(self, codes: Sequence[int]) -> list[Answer]:
        """The answers in the order of the settlements."""
        answers = [ANSWERS[code] for code in codes[: self._done]]
        for place, code in zip(self._places, codes[self._done :], strict=True):
            answers.insert(place, ANSWERS[code])
        return answers


def _item(call: Call, item: Settlement) -> tuple[object, ...]:
    call.add(item.id)
    kind, has_result, words, retry_in = _outcome(call, item)
    then = item.then
    follows = None if then is None else (call.jobs(then.jobs), then.schedule, then.schedule_in)
    return item.fence, kind, item.ran, has_result, words, retry_in, follows


def _outcome(call: Call, item: Settlement) -> tuple[int, bool, Said | None, int | None]:
    match item.outcome:
        case Completed(result=None):
            return COMPLETED, False, None, None
        case Completed(result=bytes(result)):
            call.add(result)
            return COMPLETED, True, None, None
        case Failed(failure=failure, retry_in=retry_in):
            return FAILED, False, said(failure), retry_in
        case Crashed(message=message):
            words = said(Failure(kind="crash", message=message or "its process died"))
            return CRASHED, False, words, None
        case _:
            return STOPPED, False, None, None


def release_call(releases: Sequence[Release]) -> Call:
    """As `release.lua` reads it."""
    for item in releases:
        check_span(item.delay or 0)
    call = Call(items=[(item.fence, item.delay) for item in releases])
    call.add(*check_ids([item.id for item in releases]))
    return call


def write_call(notes: Sequence[Note]) -> Call:
    """As `write.lua` reads it."""
    check_ids([note.id for note in notes])
    call = Call()
    call.values["notes"] = [_note(call, note) for note in notes]
    return call


def _note(call: Call, note: Note) -> tuple[object, ...]:
    call.add(note.id)
    match note.entry:
        case Started():
            return note.fence, STARTED, None, None
        case Progress(value=value):
            call.add(value)
            return note.fence, PROGRESS, None, None
        case LogLine(number=number, level=level, message=message):
            call.add(message.encode(errors="backslashreplace"))
            return note.fence, LINE, number, level
        case Checkpoint(name=name, value=value):
            call.add(value)
            return note.fence, CHECKPOINT, name, None


def retire_call(claimant: bytes, losses: Sequence[Loss]) -> Call:
    """As `retire.lua` reads it."""
    check_batch(len(losses))
    call = Call(losses=[(loss.fence, loss.verdict, _lost(loss)) for loss in losses])
    call.add(claimant, *(loss.id for loss in losses))
    return call


def _lost(loss: Loss) -> Said:
    message = loss.message or "its process died"
    return said(Failure(kind="crash" if loss.verdict == "crash" else "lost", message=message))
