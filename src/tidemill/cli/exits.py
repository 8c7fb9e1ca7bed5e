"""Exit codes, for scripts. Where sysexits.h has a code for the case, it is that one."""

from tidemill.model.errors import (
    BadInput,
    EngineDamaged,
    EngineError,
    NotOurs,
    SchemaTooNew,
    SchemaTooOld,
    TidemillError,
    UnknownJob,
    UnknownQueue,
    UnknownSchedule,
    UnknownTask,
)

DONE = 0
PARTLY = 1
"""Not found, refused, or only a part of what was asked was done."""
USAGE = 2
UNAVAILABLE = 69
BUG = 70
IO = 74
"""A file, or our own output, cannot be read or written."""
GAVE_UP = 75
UNUSABLE = 78
INTERRUPTED = 130
BROKEN_PIPE = 141
"""As a shell shows a program that SIGPIPE ended."""


def code_of(error: TidemillError) -> int:
    """The exit code of an error that ends a command."""
    if isinstance(error, UnknownJob | UnknownQueue | UnknownSchedule | UnknownTask):
        return PARTLY
    if isinstance(error, BadInput):
        return USAGE
    if isinstance(error, NotOurs | EngineDamaged | SchemaTooOld | SchemaTooNew):
        return UNUSABLE
    return UNAVAILABLE if isinstance(error, EngineError) else PARTLY
