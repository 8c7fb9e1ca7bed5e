"""Recording outcomes: what settles, notes, releases and lost runs send."""

from collections.abc import Sequence
from struct import Struct

from tidemill.engine.shared.codes import ANSWERS, CHECKPOINT, failure_of, note_code, outcome_code
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.model.jobs.fingerprint import as_recorded
from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.run import (
    Answer,
    Completed,
    LostRun,
    Note,
    Release,
    Settlement,
)

_DONE = Struct(">16sQQ?")

Said = tuple[str, str, str, str, str]


def said(failure: Failure) -> Said:
    """What a failure says; the rest is filled in by the engine."""
    kept = as_recorded(failure)
    return kept.kind, kept.error, kept.message, kept.traceback, kept.fingerprint


class SettleCall(ScriptCall):
    """As `settle.lua` reads it: first those that just completed, then the others."""

    def __init__(self, settlements: Sequence[Settlement]) -> None:
        super().__init__()
        self._positions: list[int] = []
        """Of the others, among all."""
        done, results = self._split(settlements)
        # One argument for all of them: to pack three for each took 0.4 us a job.
        self.add(b"".join(done), *results)
        self._done = len(done)
        self.values.update(done=self._done, results=len(results))
        self.values["items"] = [_item(self, settlements[position]) for position in self._positions]

    def _split(self, settlements: Sequence[Settlement]) -> tuple[list[bytes], list[bytes]]:
        """Those that just completed, and their results; the positions of the others are kept."""
        done: list[bytes] = []
        results: list[bytes] = []
        if len({item.id for item in settlements}) < len(settlements):  # one of them decides about another
            self._positions += range(len(settlements))
            return done, results
        for position, item in enumerate(settlements):
            outcome = item.outcome
            if (
                type(outcome) is Completed
                and item.then is None
                and outcome.result != b""  # which could not be told from none
            ):
                done.append(_DONE.pack(item.id, item.fence, item.ran, outcome.result is not None))
                if outcome.result is not None:
                    results.append(outcome.result)
            else:
                self._positions.append(position)
        return done, results

    def in_order(self, codes: Sequence[int]) -> list[Answer]:
        """The answers in the order of the settlements."""
        answers = [ANSWERS[code] for code in codes[: self._done]]
        for position, code in zip(self._positions, codes[self._done :], strict=True):
            answers.insert(position, ANSWERS[code])
        return answers


def _item(call: ScriptCall, item: Settlement) -> tuple[object, ...]:
    call.add(item.id)
    outcome = outcome_code(item)
    if outcome.result is not None:
        call.add(outcome.result)
    words = None if outcome.failure is None else said(outcome.failure)
    then = item.then
    follows = None
    if then is not None:
        follows = (call.jobs(then.jobs), then.schedule, then.schedule_in, then.schedule_version)
    has_result = outcome.result is not None
    return item.fence, outcome.code, item.ran, has_result, words, outcome.retry_in, follows


def release_call(releases: Sequence[Release]) -> ScriptCall:
    """As `release.lua` reads it."""
    call = ScriptCall(items=[(item.fence, item.delay, item.reason) for item in releases])
    call.add(*(item.id for item in releases))
    return call


def write_call(notes: Sequence[Note]) -> ScriptCall:
    """As `write.lua` reads it."""
    call = ScriptCall()
    call.values["notes"] = [_note(call, note) for note in notes]
    return call


def _note(call: ScriptCall, note: Note) -> tuple[object, ...]:
    code, number, name, value = note_code(note)
    call.add(note.id)
    if value is not None:
        call.add(value)
    # a line has its number and its level, a checkpoint its name
    return (note.fence, code, name, None) if code == CHECKPOINT else (note.fence, code, number, name)


def retire_call(claimant: bytes, lost_runs: Sequence[LostRun]) -> ScriptCall:
    """As `retire.lua` reads it."""
    call = ScriptCall(lost_runs=[(run.fence, run.verdict, said(failure_of(run))) for run in lost_runs])
    call.add(claimant, *(run.id for run in lost_runs))
    return call
