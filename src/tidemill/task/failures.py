"""Exceptions as records: what is kept of a failed attempt, and what the retry policy asks about it."""

import traceback
from types import TracebackType

from tidemill.model.jobs.job import Failure, FailureKind
from tidemill.model.names import qualified_name


def failure_of(error: BaseException, kind: FailureKind = "error") -> Failure:
    """The record of an exception. Frames of Tidemill itself, above the task's own code, are left out."""
    return Failure(
        kind=kind,
        error=qualified_name(type(error)),
        message=_spelled_out(_message(error)),
        traceback=_spelled_out(_traceback(error)),
    )


def lineage(error: BaseException) -> list[str]:
    """The names of an exception's classes, from its own up to the root."""
    return [qualified_name(cls) for cls in type(error).__mro__ if issubclass(cls, BaseException)]


def _spelled_out(text: str) -> str:
    """Lone surrogates (a file name that is not UTF-8) can be neither stored nor logged as they are."""
    return text.encode(errors="backslashreplace").decode()


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<its message cannot be shown: {type(broken).__name__}>"


def _traceback(error: BaseException) -> str:
    try:
        own = _without_our_frames(error.__traceback__)
        summary = traceback.TracebackException(type(error), error, own, compact=True)
        _forget_columns(summary)
        return "".join(summary.format())
    except Exception as broken:  # an exception whose parts misbehave must not hide that there was one
        return f"{qualified_name(type(error))}: <its traceback cannot be shown: {type(broken).__name__}>\n"


def _forget_columns(summary: traceback.TracebackException | None) -> None:
    """No marks under the code: to place them Python parses each line, which costs more than all the rest and
    in Python 3.11 fails when two threads do it at once ("AST constructor recursion depth mismatch")."""
    if summary is None:
        return
    for frame in summary.stack:
        frame.colno = frame.end_colno = None
    for other in (summary.__cause__, summary.__context__, *(summary.exceptions or ())):
        _forget_columns(other)


def _without_our_frames(frames: TracebackType | None) -> TracebackType | None:
    found = frames
    while found is not None and found.tb_frame.f_globals.get("__name__", "").startswith("tidemill."):
        found = found.tb_next
    return found if found is not None else frames
