"""Answers, outcomes and notes as numbers, between an engine and its store's own code.

The numbers are those of `schema/` and `lua/`. Also here: the message of a refused claim.
"""

from typing import NamedTuple

from tidemill.model.errors import BadInput, ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused, UnknownTask
from tidemill.model.jobs.job import CancelAnswer, DropAnswer, Failure, ReplayAnswer, RunNowAnswer
from tidemill.model.jobs.run import (
    Answer,
    Checkpoint,
    ClaimRequest,
    Completed,
    Crashed,
    Failed,
    LogLine,
    LostRun,
    Note,
    Progress,
    Settlement,
    Started,
)
from tidemill.model.time import Span

ANSWERS = (Answer.APPLIED, Answer.ALREADY, Answer.STALE)
CANCEL_ANSWERS = (CancelAnswer.CANCELLED, CancelAnswer.ASKED, CancelAnswer.FINISHED, CancelAnswer.UNKNOWN)
REPLAY_ANSWERS = (
    ReplayAnswer.REPLAYED, ReplayAnswer.LIVE, ReplayAnswer.NO_BODY, ReplayAnswer.UNKNOWN,
    ReplayAnswer.NOT_UNIQUE,
)  # fmt: skip
RUN_NOW_ANSWERS = tuple(RunNowAnswer)
DROP_ANSWERS = (DropAnswer.DROPPED, DropAnswer.LIVE, DropAnswer.UNKNOWN)

COMPLETED, FAILED, STOPPED, CRASHED = range(4)
"""Outcomes."""
STARTED, PROGRESS, LINE, CHECKPOINT = range(4)
"""Notes."""

PROCESS_DIED = "its process died"
"""The message of a lost run about which nothing was reported."""


class OutcomeCode(NamedTuple):
    """An outcome: its number, and what goes with it."""

    code: int
    result: bytes | None = None
    failure: Failure | None = None
    retry_in: Span | None = None


_STOPPED = OutcomeCode(STOPPED)


def outcome_code(settlement: Settlement) -> OutcomeCode:
    """The outcome of a run, as it is sent."""
    match settlement.outcome:
        case Completed(result=result):
            return OutcomeCode(COMPLETED, result)
        case Failed(failure=failure, retry_in=retry_in):
            return OutcomeCode(FAILED, failure=failure, retry_in=retry_in)
        case Crashed(message=message):
            return OutcomeCode(CRASHED, failure=Failure(kind="crash", message=message or PROCESS_DIED))
        case _:
            return _STOPPED


def failure_of(run: LostRun) -> Failure:
    """What is recorded of a lost run."""
    return Failure(kind="crash" if run.verdict == "crash" else "lost", message=run.message or PROCESS_DIED)


class NoteCode(NamedTuple):
    """A note: its number, and what goes with it."""

    code: int
    number: int | None = None
    name: str | None = None
    """Of a line its level, of a checkpoint its name."""
    value: bytes | None = None


_STARTED = NoteCode(STARTED)


def note_code(note: Note) -> NoteCode:
    """A note, as it is sent."""
    match note.entry:
        case Started():
            return _STARTED
        case Progress(value=value):
            return NoteCode(PROGRESS, value=value)
        case LogLine(number=number, level=level, message=message):
            return NoteCode(LINE, number, level, line_bytes(message))
        case Checkpoint(name=name, value=value):
            return NoteCode(CHECKPOINT, name=name, value=value)


def line_bytes(message: str) -> bytes:
    """A log line as it is kept: lone surrogates (a file name that is not UTF-8) are spelled out."""
    return message.encode(errors="backslashreplace")


def note_answer(applied: object) -> Answer:
    """Whether a note was kept."""
    return Answer.APPLIED if applied else Answer.STALE


def refusal(kind: str, request: ClaimRequest, last: int) -> Refused:
    """Why a claim was not granted; `last`: the claimant's last number that took jobs."""
    if kind == "MemberGone":
        return MemberGone("this member is not registered, or was dropped after its lease: heartbeat first")
    if kind == "ClaimantRetired":
        return ClaimantRetired("this claimant was declared dead; start a new one")
    return ClaimOutOfOrder(f"claim {request.number} comes after claim {last} of the same claimant")


def another_members_claimant() -> BadInput:
    """Why a claim makes no sense: its claimant has taken jobs for another member."""
    return BadInput("this claimant has claimed under another member: each member has claimants of its own")


def unknown_task(name: str) -> UnknownTask:
    """The refusal to pause or resume what is not in the catalogue."""
    return UnknownTask(
        f"no worker has published a task {name!r}; `tidemill tasks ls` lists those that are known"
    )
